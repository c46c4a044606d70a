package eventratelimit

import (
	"fmt"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"

	"github.com/periplus/periplus/apiserver/admission"
)

// keys tell by the type of a limit which events share a bucket.
var keys = map[string]func(*admission.Attributes) string{
	"Server":    func(*admission.Attributes) string { return "" },
	"Namespace": func(a *admission.Attributes) string { return a.Namespace },
	"User": func(a *admission.Attributes) string {
		if a.User == nil {
			return ""
		}
		return a.User.GetName()
	},
	"SourceAndObject": sourceAndObject,
}

func sourceAndObject(a *admission.Attributes) string {
	var component, host string
	var of corev1.ObjectReference
	switch e := a.Object.(type) {
	case *corev1.Event:
		component, host, of = e.Source.Component, e.Source.Host, e.InvolvedObject
	case *eventsv1.Event:
		component, host, of = e.DeprecatedSource.Component, e.DeprecatedSource.Host, e.Regarding
	default:
		return ""
	}
	return strings.Join([]string{component, host, of.Kind, of.Namespace, of.Name, string(of.UID), of.APIVersion}, "")
}

// A limiter has the buckets of one limit.
type limiter struct {
	limit Limit
	time  clock.PassiveClock

	mu      sync.Mutex // guards the making of buckets
	buckets *lru.Cache
}

func newLimiter(l Limit, time clock.PassiveClock) *limiter {
	size := int(l.CacheSize)
	if size == 0 || l.Type == "Server" {
		size = defaultCache
	}
	return &limiter{limit: l, time: time, buckets: lru.New(size)}
}

// accept takes one event out of its bucket, or refuses it.
func (l *limiter) accept(a *admission.Attributes) error {
	key := keys[l.limit.Type](a)
	if l.bucket(key).TryAccept() {
		return nil
	}
	return fmt.Errorf("limit reached on type %v for key %v", l.limit.Type, key)
}

func (l *limiter) bucket(key string) flowcontrol.PassiveRateLimiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b, ok := l.buckets.Get(key); ok {
		return b.(flowcontrol.PassiveRateLimiter)
	}
	b := flowcontrol.NewTokenBucketPassiveRateLimiterWithClock(float32(l.limit.QPS), int(l.limit.Burst), l.time)
	l.buckets.Add(key, b)
	return b
}
