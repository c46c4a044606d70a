package app

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/periplus/periplus/apiserver/request"
	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/journey"
)

const (
	nodeUserPrefix = "system:node:"
	// localOnly asks a server for what it has itself.
	localOnly = "local"
	// otherServer bounds how long another server may take to answer, and how much.
	otherServer      = 2 * time.Second
	maxOtherJourneys = 32 << 20
)

// serveJourneys serves the log of this server. A node sends only steps of its own:
// its name is that in its certificate. Of several servers each has the steps that were
// sent to it, so the one that is asked asks the others.
func (s *controlPlane) serveJourneys(w http.ResponseWriter, r *http.Request) {
	sender, node := "", false
	if state := request.From(r.Context()); state != nil && state.User != nil {
		sender, node = strings.CutPrefix(state.User.GetName(), nodeUserPrefix)
	}
	if r.Method != http.MethodGet || s.quorum == nil || r.URL.Query().Has(localOnly) {
		s.spans.Serve(w, r, sender, node)
		return
	}
	spans := s.journeysOfOthers(r)
	if request := r.URL.Query().Get("request"); request != "" {
		spans = append(spans, s.spans.Request(request)...)
	} else {
		spans = append(spans, s.spans.Trace(journey.TraceID(r.URL.Query().Get("trace")))...)
	}
	slices.SortStableFunc(spans, func(a, b journey.Span) int { return cmp.Or(a.Start.Compare(b.Start), a.End.Compare(b.End)) })
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(spans) // the client has gone
}

// journeysOfOthers asks all other servers; one that does not answer is left out.
func (s *controlPlane) journeysOfOthers(r *http.Request) []journey.Span {
	others := s.otherServers()
	if len(others) == 0 {
		return []journey.Span{}
	}
	transport := &http.Transport{TLSClientConfig: s.id.kubeletTLS()}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	ctx, cancel := context.WithTimeout(r.Context(), otherServer)
	defer cancel()
	query := r.URL.Query()
	query.Set(localOnly, "true")
	parts := make([][]journey.Span, len(others))
	var group sync.WaitGroup
	for i, address := range others {
		group.Go(func() {
			var err error
			if parts[i], err = journeysOf(ctx, client, "https://"+address+journey.Path+"?"+query.Encode()); err != nil {
				s.log.Warn("the steps that another server has are missing in a journey", base.KeyAddress, address, base.KeyError, err)
			}
		})
	}
	group.Wait()
	return slices.Concat(parts...)
}

func journeysOf(ctx context.Context, client *http.Client, url string) ([]journey.Span, error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	answer, err := client.Do(q)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("answered %s", answer.Status)
	}
	var out []journey.Span
	return out, json.NewDecoder(io.LimitReader(answer.Body, maxOtherJourneys)).Decode(&out)
}

// otherServers are the addresses of the servers beside this one.
func (s *controlPlane) otherServers() []string {
	if s.shared == nil {
		return nil
	}
	lister := s.shared.Discovery().V1().EndpointSlices().Lister()
	list, err := lister.EndpointSlices(metav1.NamespaceDefault).List(labels.SelectorFromSet(labels.Set{discoveryv1.LabelServiceName: "kubernetes"}))
	if err != nil {
		return nil
	}
	self := s.advertise()
	own := net.JoinHostPort(self.Addr().String(), fmt.Sprint(self.Port()))
	return slices.DeleteFunc(endpointsOf(list), func(a string) bool { return a == own })
}
