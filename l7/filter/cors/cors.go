package cors

import (
	"strconv"
	"strings"
	"time"

	"github.com/periplus/periplus/l7"
)

// Filter implements cross-origin resource sharing.
type Filter struct {
	// Origins that may read responses; a match of MatchAny allows all.
	Origins []l7.StringMatch
	// Methods and Headers that they may use; "*" in Headers allows those asked for.
	Methods, Headers []string
	// Expose are the response headers that they may read.
	Expose      []string
	Credentials bool
	MaxAge      time.Duration
	// AnyOrigin answers with "*" instead of the origin, without Credentials.
	AnyOrigin bool
	// KeepResponse leaves alone responses of endpoints that have said something already.
	KeepResponse bool
}

var _ l7.ResponseFilter = (*Filter)(nil)

func (f *Filter) allows(origin string) bool {
	for i := range f.Origins {
		if f.Origins[i].Matches(origin) {
			return true
		}
	}
	return false
}

// Request implements l7.Filter: a preflight is answered here.
func (f *Filter) Request(x *l7.Exchange) *l7.Reply {
	q := &x.Request
	origin := q.Header.Get("origin")
	if origin == "" || q.Method != "OPTIONS" || !q.Header.Has("access-control-request-method") {
		return nil
	}
	if !f.allows(origin) {
		return nil // the endpoint may know better
	}
	h := f.origin(nil, origin)
	if len(f.Methods) > 0 {
		h.Add("Access-Control-Allow-Methods", strings.Join(f.Methods, ", "))
	}
	allowed := strings.Join(f.Headers, ", ")
	if len(f.Headers) == 1 && f.Headers[0] == "*" && f.Credentials {
		allowed = q.Header.Get("access-control-request-headers")
	}
	if allowed != "" {
		h.Add("Access-Control-Allow-Headers", allowed)
	}
	if f.MaxAge > 0 {
		h.Add("Access-Control-Max-Age", strconv.Itoa(int(f.MaxAge.Seconds())))
	}
	return &l7.Reply{Status: 204, Header: h, Details: "cors_preflight"}
}

// Response implements l7.ResponseFilter.
func (f *Filter) Response(x *l7.Exchange) {
	origin := x.Request.Header.Get("origin")
	h := &x.Response.Header
	if origin == "" || !f.allows(origin) || f.KeepResponse && h.Has("access-control-allow-origin") {
		return
	}
	h.Del("access-control-allow-origin")
	h.Del("access-control-allow-credentials")
	*h = f.origin(*h, origin)
	if len(f.Expose) > 0 {
		h.Set("Access-Control-Expose-Headers", strings.Join(f.Expose, ", "))
	}
}

func (f *Filter) origin(h l7.Header, origin string) l7.Header {
	if f.AnyOrigin && !f.Credentials {
		h.Add("Access-Control-Allow-Origin", "*")
		return h
	}
	h.Add("Access-Control-Allow-Origin", origin)
	h.Add("Vary", "Origin")
	if f.Credentials {
		h.Add("Access-Control-Allow-Credentials", "true")
	}
	return h
}
