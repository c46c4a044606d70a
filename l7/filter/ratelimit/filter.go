package ratelimit

import (
	"math"
	"strconv"

	"github.com/periplus/periplus/l7"
)

// Filter refuses what exceeds its limiter.
type Filter struct {
	Limiter *Limiter
	// Key says whose bucket a request takes from; nil: one for all.
	Key func(x *l7.Exchange) string
	// Match leaves requests alone for which it is false; nil: all are counted.
	Match func(x *l7.Exchange) bool
	// Status of the refusal; zero: 429. Headers are added to it.
	Status  int
	Headers l7.Header
}

var _ l7.Filter = (*Filter)(nil)

// ClientAddress is a Key: each client has a bucket.
func ClientAddress(x *l7.Exchange) string { return x.Client.String() }

// HeaderValue is a Key: each value of a header has a bucket.
func HeaderValue(name string) func(*l7.Exchange) string {
	return func(x *l7.Exchange) string { return x.Request.Header.Get(name) }
}

// Request implements l7.Filter.
func (f *Filter) Request(x *l7.Exchange) *l7.Reply {
	if f.Match != nil && !f.Match(x) {
		return nil
	}
	key := ""
	if f.Key != nil {
		key = f.Key(x)
	}
	ok, after := f.Limiter.Allow(key, x.Start)
	if ok {
		return nil
	}
	status := f.Status
	if status == 0 {
		status = 429
	}
	h := append(f.Headers.Clone(), l7.Field{Name: "Retry-After", Value: strconv.Itoa(int(math.Ceil(max(after.Seconds(), 1))))})
	return &l7.Reply{Status: status, Header: h, Body: "local_rate_limited", Flag: l7.FlagRateLimited, Details: "local_rate_limited"}
}
