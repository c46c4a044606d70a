package l7

import (
	"errors"
	"fmt"
	"regexp"
	"time"
)

// A RouteConfiguration maps hosts to routes (envoy.config.route.v3.RouteConfiguration).
type RouteConfiguration struct {
	VirtualHosts []*VirtualHost
	// Metadata are labels for filters and observers.
	Metadata map[string]string
}

// A VirtualHost holds the routes of some domains.
type VirtualHost struct {
	Name string
	// Domains: "a.example", "*.example" (suffix), "a.*" (prefix), "*". The most
	// specific one of all virtual hosts decides: exact, then the longest suffix, then
	// the longest prefix, then "*". Ports in Host are ignored unless a domain has one.
	Domains []string
	// Routes: the first match counts.
	Routes []*Route
	// Filters run before those of the route.
	Filters  []Filter
	Metadata map[string]string
}

// A Route says what to do with the requests that it matches.
type Route struct {
	// Name is for logs and observers.
	Name  string
	Match RouteMatch
	// Exactly one of these.
	Forward  *Forward
	Redirect *Redirect
	Direct   *Reply
	// Filters run after those of the virtual host.
	Filters []Filter
	// Metadata are labels for filters and observers.
	Metadata map[string]string
}

// A RouteMatch matches a request if each part does.
type RouteMatch struct {
	Path PathMatch
	// Method; empty: any.
	Method  string
	Headers []HeaderMatch
	Query   []QueryMatch
	// Authority is compared with the Host header, for hosts that a domain cannot express.
	Authority *StringMatch
	// Percent of the requests, in millionths; zero: all.
	Fraction uint32
	// Func is asked last; nil: nothing more is asked. For what no other field expresses,
	// such as labels of the source.
	Func func(*Exchange) bool
}

// A PathMatch compares the path of a request, without its query.
type PathMatch struct {
	Kind  PathKind
	Value string
	// Regex, of PathRegex, finds a match in the path; see Anchored.
	Regex      *regexp.Regexp
	IgnoreCase bool
}

// A PathKind says how a PathMatch compares.
type PathKind int

// Kinds of PathMatch.
const (
	// PathAny matches every path.
	PathAny PathKind = iota
	PathExact
	// PathPrefix compares characters: /a matches /ab.
	PathPrefix
	// PathSegments compares segments: /a matches /a and /a/b, not /ab (Prefix of
	// Ingress and Gateway API). A trailing slash of Value does not count.
	PathSegments
	PathRegex
)

// Forward sends a request to a cluster.
type Forward struct {
	// Exactly one of these. ClusterHeader names a request header with the cluster's name.
	Cluster       string
	Weighted      []WeightedCluster
	ClusterHeader string

	// Path and Host rewrite the request.
	Path *PathRewrite
	// Host replaces Host; HostOfEndpoint takes the endpoint's host name.
	Host           string
	HostOfEndpoint bool

	// Timeout is the time from the end of the request to the end of the response.
	// Zero: none. After it: 504.
	Timeout time.Duration
	// IdleTimeout is the longest time without a byte. Zero: that of the connection manager.
	IdleTimeout time.Duration
	// MaxBodyBytes: larger requests are answered with 413. Zero: no bound.
	MaxBodyBytes int64

	Retry   *RetryPolicy
	Mirrors []Mirror
	// Hash gives the key of ring hash balancing: the first policy with a value decides.
	Hash []HashPolicy
	// Upgrades, if not nil, replaces the connection manager's.
	Upgrades []string
}

// A WeightedCluster gets its share of a route's requests.
type WeightedCluster struct {
	Name    string
	Weight  uint32
	Filters []Filter
	// Direct answers instead of a cluster: Gateway API answers 500 for the share of
	// backends that do not exist.
	Direct *Reply
	// Host replaces Forward.Host for this cluster.
	Host string
}

// A PathRewrite changes the path; the query stays.
type PathRewrite struct {
	// Full replaces the whole path. Prefix replaces what Route.Match.Path matched.
	// Regex with Substitution ($1 or \1 for groups) replaces the match.
	Full         *string
	Prefix       *string
	Regex        *regexp.Regexp
	Substitution string
}

// A Redirect answers with a location.
type Redirect struct {
	Scheme string
	Host   string
	Port   int
	Path   *PathRewrite
	// Code: 301, 302, 303, 307, 308; zero: 301.
	Code int
	// StripQuery leaves the query out.
	StripQuery bool
}

// RetryOn is a set of reasons to try again.
type RetryOn uint32

// Reasons to try again, with Envoy's names.
const (
	RetryConnectFailure    RetryOn = 1 << iota // the connection could not be made: nothing was sent
	RetryReset                                 // the connection broke before a response began
	RetryRefusedStream                         // HTTP/2 REFUSED_STREAM: nothing was processed
	Retry5xx                                   // a response of 500-599, a reset or a per-try timeout
	RetryGatewayError                          // 502, 503, 504
	RetryRetriable4xx                          // 409
	RetryStatusCodes                           // RetryPolicy.StatusCodes
	RetryCancelled                             // gRPC status 1
	RetryDeadlineExceeded                      // gRPC status 4
	RetryInternal                              // gRPC status 13
	RetryResourceExhausted                     // gRPC status 8
	RetryUnavailable                           // gRPC status 14
)

// A RetryPolicy says when a request is tried again. A request whose body is larger
// than what is kept (64 KiB) or whose response has begun is never tried again.
type RetryPolicy struct {
	On          RetryOn
	StatusCodes []int
	// Attempts after the first one.
	Attempts int
	// PerTry bounds one try. Zero: none.
	PerTry time.Duration
	// Between tries: a random time up to BackOff × 2^n, at most MaxBackOff. Zero: 25 ms
	// and ten times BackOff.
	BackOff    time.Duration
	MaxBackOff time.Duration
	// SameHost allows the endpoint that has just failed to be tried again at once.
	SameHost bool
}

// A Mirror sends a copy of a request and discards the response.
type Mirror struct {
	Cluster string
	// Fraction of the requests, in millionths; zero: all.
	Fraction uint32
}

// A HashPolicy takes a part of the request as key; the one field that is set.
type HashPolicy struct {
	Header string
	Query  string
	// Cookie is made, for CookieTTL, when the request has none. A TTL of zero makes a
	// session cookie; negative makes none.
	Cookie     string
	CookiePath string
	CookieTTL  time.Duration
	SourceIP   bool
}

func (c *RouteConfiguration) validate() error {
	var errs []error
	domains := map[string]string{}
	for _, v := range c.VirtualHosts {
		if len(v.Domains) == 0 {
			errs = append(errs, fmt.Errorf("virtual host %q: domains: one %w", v.Name, ErrEmpty))
		}
		for _, d := range v.Domains {
			if other, ok := domains[d]; ok {
				errs = append(errs, fmt.Errorf("virtual host %q: domain %q of virtual host %q %w", v.Name, d, other, ErrDuplicate))
			}
			domains[d] = v.Name
		}
		for i, r := range v.Routes {
			if err := r.validate(); err != nil {
				errs = append(errs, fmt.Errorf("virtual host %q: route %d (%q): %w", v.Name, i, r.Name, err))
			}
		}
	}
	return errors.Join(errs...)
}

func (r *Route) validate() error {
	actions := 0
	for _, set := range []bool{r.Forward != nil, r.Redirect != nil, r.Direct != nil} {
		if set {
			actions++
		}
	}
	if actions != 1 {
		return errors.New("must have one of Forward, Redirect and Direct")
	}
	if r.Match.Path.Kind == PathRegex && r.Match.Path.Regex == nil {
		return fmt.Errorf("regular expression of the path %w", ErrEmpty)
	}
	if f := r.Forward; f != nil && f.Cluster == "" && f.ClusterHeader == "" && len(f.Weighted) == 0 {
		return fmt.Errorf("cluster %w", ErrEmpty)
	}
	return nil
}
