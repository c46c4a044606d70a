package gateway

import "github.com/periplus/periplus/l7/filter/ratelimit"

// limits keeps the tokens of rate limits over builds.
type limits struct {
	known map[string]*ratelimit.Limiter
	used  map[string]bool // in this build
}

func newLimits() *limits {
	return &limits{known: map[string]*ratelimit.Limiter{}, used: map[string]bool{}}
}

// Limiter returns the tokens of a name, with the rate and burst of now.
func (b *Build) Limiter(name string, rate float64, burst int) *ratelimit.Limiter {
	l := b.limits
	l.used[name] = true
	if known := l.known[name]; known != nil {
		known.Configure(rate, burst)
		return known
	}
	made := ratelimit.NewLimiter(rate, burst)
	l.known[name] = made
	return made
}

// sweep forgets what the last build did not use.
func (l *limits) sweep() {
	for name := range l.known {
		if !l.used[name] {
			delete(l.known, name)
		}
	}
	clear(l.used)
}
