package rest

import (
	"context"
	"strings"
	"time"

	"github.com/periplus/periplus/apiserver/request"
)

// measureBody counts the body of a write.
func measureBody(ctx context.Context, size int) {
	if s := request.From(ctx); s != nil {
		s.Metrics.Body(s.Info.Group, s.Info.Resource, s.Info.Verb, size)
	}
}

// measureList counts a list from the cache, or from the store's past.
func (e *endpoint) measureList(ctx context.Context, cached bool, looked, returned int) {
	gvr := e.objects.Resource.GVR
	request.Metrics(ctx).Listed(gvr.Group, gvr.Resource, cached, looked, returned)
}

// measureFresh counts how long a read has waited for the cache.
func (e *endpoint) measureFresh(ctx context.Context, newest bool, err error, start time.Time) {
	gvr := e.objects.Resource.GVR
	request.Metrics(ctx).Fresh(gvr.Group, gvr.Resource, newest, err == nil, time.Since(start))
}

// measureBegin counts how long a watch took until it had told what was there.
func (wr *watcher) measureBegin() {
	s := request.From(wr.r.Context())
	if s == nil || s.Metrics == nil {
		return
	}
	scope := "cluster"
	switch {
	case s.Info.Name != "":
		scope = "resource"
	case s.Info.Namespace != "":
		scope = "namespace"
	}
	s.Metrics.WatchList(wr.e.gvr.Group, wr.e.gvr.Version, wr.e.gvr.Resource, scope, time.Since(s.Received))
}

// removedIn reads the release in which a version goes out of what clients are told of it
// ("v1beta1 Thing is deprecated in v1.30+, unavailable in v1.40+"); "" if it says nothing.
func removedIn(text string) string {
	_, after, ok := strings.Cut(text, "unavailable in v")
	if !ok {
		return ""
	}
	release, _, _ := strings.Cut(after, "+")
	return release
}
