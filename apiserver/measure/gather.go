package measure

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
)

// Handler serves metrics, as text or as protobuf, compressed if the client takes it. Of
// metrics with the same name those of the first gatherer are shown: libraries define some
// under upstream's names which they would fill in upstream's server.
func Handler(from ...prometheus.Gatherer) http.Handler {
	return promhttp.HandlerFor(first(from), promhttp.HandlerOpts{Timeout: 30 * time.Second, ErrorHandling: promhttp.ContinueOnError})
}

type first []prometheus.Gatherer

// Gather implements prometheus.Gatherer.
func (f first) Gather() ([]*dto.MetricFamily, error) {
	var out []*dto.MetricFamily
	var errs []error
	seen := map[string]bool{}
	for _, g := range f {
		if g == nil {
			continue
		}
		families, err := g.Gather()
		errs = append(errs, err)
		for _, m := range families {
			if !seen[m.GetName()] {
				seen[m.GetName()] = true
				out = append(out, m)
			}
		}
	}
	slices.SortFunc(out, func(a, b *dto.MetricFamily) int { return strings.Compare(a.GetName(), b.GetName()) })
	return out, errors.Join(errs...)
}
