package ingress

import (
	"fmt"
	"regexp"
	"slices"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/periplus/periplus/l7"
)

// A canary takes a part of the requests of a path away from its Ingress.
type canary struct {
	owner   *networkingv1.Ingress
	options *options
	backend *networkingv1.IngressBackend

	weight, total          int
	header, value, pattern string
	cookie                 string
}

func (t *translation) collectCanary(i *networkingv1.Ingress) {
	a := annotations{i, t.wrong(i)}
	for r := range i.Spec.Rules {
		rule := &i.Spec.Rules[r]
		if rule.HTTP == nil {
			continue
		}
		s := t.site(rule.Host)
		for p := range rule.HTTP.Paths {
			hp := &rule.HTTP.Paths[p]
			main := s.paths[pathKey(hp.Path, hp.PathType)]
			if main == nil {
				t.wrong(i)("CanaryWithoutMain", fmt.Sprintf("no other Ingress has path %q of host %q", hp.Path, rule.Host))
				continue
			}
			main.canaries = append(main.canaries, &canary{
				owner: i, options: t.options[i.UID], backend: &hp.Backend,
				weight: a.number("canary-weight", 0), total: max(a.number("canary-weight-total", 100), 1),
				header: a.text("canary-by-header"), value: a.text("canary-by-header-value"), pattern: a.text("canary-by-header-pattern"),
				cookie: a.text("canary-by-cookie"),
			})
		}
	}
}

// withCanaries puts routes for the canaries before that of the path: by header, by
// cookie, then by weight.
func (t *translation) withCanaries(p *path, main *l7.Route) []*l7.Route {
	var out []*l7.Route
	variant := func(f *l7.Forward, header string, m l7.StringMatch) {
		r := *main
		r.Match.Headers = append(slices.Clip(r.Match.Headers), l7.HeaderMatch{Name: header, Value: m})
		r.Forward = f
		out = append(out, &r)
	}
	exact := func(v string) l7.StringMatch { return l7.StringMatch{Kind: l7.MatchExact, Value: v} }
	weighted := *main.Forward
	var shares []l7.WeightedCluster
	rest := uint32(0)
	for _, c := range p.canaries {
		f, err := t.forward(c.owner, c.backend, p.options, p.match.Value)
		if err != nil {
			t.wrong(c.owner)("ServiceNotFound", err.Error())
			continue
		}
		switch {
		case c.header != "" && c.value != "":
			variant(f, c.header, exact(c.value))
		case c.header != "" && c.pattern != "":
			if e, err := regexp.Compile(c.pattern); err == nil {
				variant(f, c.header, l7.StringMatch{Kind: l7.MatchRegex, Regex: e})
			} else {
				t.wrong(c.owner)("InvalidAnnotation", fmt.Sprintf("%scanary-by-header-pattern: %v", prefix, err))
			}
		case c.header != "":
			variant(f, c.header, exact("always"))
			variant(main.Forward, c.header, exact("never"))
		}
		if c.cookie != "" {
			variant(f, "cookie", cookieMatch(c.cookie, "always"))
			variant(main.Forward, "cookie", cookieMatch(c.cookie, "never"))
		}
		if c.weight > 0 && len(shares) == 0 {
			weight := min(c.weight, c.total)
			shares = append(shares, l7.WeightedCluster{Name: f.Cluster, Weight: uint32(weight)})
			rest = uint32(c.total - weight)
		}
	}
	if len(shares) > 0 {
		weighted.Cluster, weighted.Weighted = "", append(shares, l7.WeightedCluster{Name: main.Forward.Cluster, Weight: rest})
		r := *main
		r.Forward = &weighted
		return append(out, &r)
	}
	return append(out, main)
}

func cookieMatch(name, value string) l7.StringMatch {
	return l7.StringMatch{Kind: l7.MatchRegex, Regex: regexp.MustCompile(`(?:^|;\s*)` + regexp.QuoteMeta(name) + `=` + value + `(?:;|$)`)}
}
