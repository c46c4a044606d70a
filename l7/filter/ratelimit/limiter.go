package ratelimit

import (
	"sync"
	"time"
)

// A Limiter holds token buckets. Rate and burst may be changed while it is used.
type Limiter struct {
	mu      sync.Mutex // guards all fields
	rate    float64    // tokens a second
	burst   float64
	buckets map[string]*bucket
	swept   time.Time
}

type bucket struct {
	tokens float64
	at     time.Time
}

// maxKeys bounds the memory of a limiter: beyond it full buckets are forgotten, and
// if there are none, new keys share one bucket.
const maxKeys = 65536

// NewLimiter allows rate events a second, and burst at once. A burst below 1 is 1.
func NewLimiter(rate float64, burst int) *Limiter {
	l := &Limiter{buckets: map[string]*bucket{}}
	l.Configure(rate, burst)
	return l
}

// Configure changes rate and burst; tokens stay.
func (l *Limiter) Configure(rate float64, burst int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rate, l.burst = rate, float64(max(burst, 1))
}

// Allow takes a token of a key's bucket. Without one, it returns after how long there
// will be one.
func (l *Limiter) Allow(key string, now time.Time) (ok bool, after time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.bucketLocked(key, now)
	b.tokens = min(l.burst, b.tokens+now.Sub(b.at).Seconds()*l.rate)
	b.at = now
	if b.tokens >= 1 {
		b.tokens--
		return true, 0
	}
	if l.rate <= 0 {
		return false, time.Hour
	}
	return false, time.Duration((1 - b.tokens) / l.rate * float64(time.Second))
}

func (l *Limiter) bucketLocked(key string, now time.Time) *bucket {
	if b := l.buckets[key]; b != nil {
		return b
	}
	if len(l.buckets) >= maxKeys {
		if now.Sub(l.swept) > time.Second {
			l.swept = now
			for k, b := range l.buckets {
				if b.tokens+now.Sub(b.at).Seconds()*l.rate >= l.burst {
					delete(l.buckets, k)
				}
			}
		}
		if len(l.buckets) >= maxKeys {
			key = ""
			if b := l.buckets[key]; b != nil {
				return b
			}
		}
	}
	b := &bucket{tokens: l.burst, at: now}
	l.buckets[key] = b
	return b
}
