package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// attempts is how often a request to the webhook is made, each time after a pause
// that is half as long again.
const attempts = 5

// A webhook sends events, as an EventList, to a program over HTTPS.
type webhook struct {
	url     string
	client  *http.Client
	backoff time.Duration
	limit   limit
	all     int64 // bytes of a request, if there is a limit

	once  sync.Once
	ended chan struct{} // closed when there is no time for retries any more
}

var _ Sink = (*webhook)(nil)

func openWebhook(o *Options, log *slog.Logger) (*webhook, error) {
	config, err := clientcmd.BuildConfigFromFlags("", o.WebhookConfig)
	if err != nil {
		return nil, err
	}
	config.Timeout = 30 * time.Second
	client, err := restclient.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	return &webhook{
		url: config.Host + config.APIPath, client: client, backoff: o.WebhookBackoff.Duration, limit: limit{o.Truncate, o.TruncateEach, log},
		all: o.TruncateAll, ended: make(chan struct{}),
	}, nil
}

// Run implements Sink.
func (h *webhook) Run(ctx context.Context) error {
	<-ctx.Done()
	h.once.Do(func() { close(h.ended) })
	h.client.CloseIdleConnections()
	return nil
}

// Write implements Sink.
func (h *webhook) Write(events ...*auditv1.Event) error {
	for len(events) > 0 {
		var body []byte
		var err error
		if body, events, err = h.pack(events); err != nil {
			return err
		}
		if body == nil {
			continue
		}
		if err := h.send(body); err != nil {
			return err
		}
	}
	return nil
}

// pack returns the request for as many events as fit, and the rest.
func (h *webhook) pack(events []*auditv1.Event) (body []byte, rest []*auditv1.Event, err error) {
	list := struct {
		metav1.TypeMeta `json:",inline"`
		Metadata        struct{}          `json:"metadata"`
		Items           []json.RawMessage `json:"items"`
	}{TypeMeta: metav1.TypeMeta{Kind: "EventList", APIVersion: auditv1.SchemeGroupVersion.String()}}
	size := int64(0)
	for len(events) > 0 {
		item, err := h.item(events[0])
		if err != nil {
			return nil, nil, err
		}
		if h.limit.on && size > 0 && size+int64(len(item)) > h.all {
			break
		}
		if item != nil {
			list.Items = append(list.Items, item)
			size += int64(len(item))
		}
		events = events[1:]
	}
	if len(list.Items) == 0 {
		return nil, events, nil
	}
	body, err = json.Marshal(list)
	return body, events, err
}

// item encodes an event; nil if it is too large.
func (h *webhook) item(e *auditv1.Event) ([]byte, error) {
	short, err := h.limit.shorten(e)
	if short == nil || err != nil {
		return nil, err
	}
	return json.Marshal(short)
}

func (h *webhook) send(body []byte) error {
	pause := h.backoff
	for attempt := 1; ; attempt++ {
		err, again := h.post(body)
		if err == nil {
			return nil
		}
		if !again || attempt == attempts {
			return err
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-h.ended:
			timer.Stop()
			return err
		}
		pause += pause / 2
	}
}

// post makes one request; again reports whether another may help.
func (h *webhook) post(body []byte) (err error, again bool) { //nolint:revive,staticcheck // the error is what matters
	r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, h.url, bytes.NewReader(body))
	if err != nil {
		return err, false
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := h.client.Do(r)
	if err != nil {
		return err, true
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 64<<10)) // so that the connection can be used again
	switch {
	case answer.StatusCode < http.StatusMultipleChoices:
		return nil, false
	case answer.StatusCode == http.StatusTooManyRequests || answer.StatusCode >= http.StatusInternalServerError:
		return fmt.Errorf("audit webhook %s: %s", h.url, answer.Status), true
	}
	return fmt.Errorf("audit webhook %s: %s", h.url, answer.Status), false
}
