package metric

import (
	"maps"
	"strings"
	"sync"
	"sync/atomic"
)

// Labels are the values of a series' labels in the order of the definition; what is
// beyond them is empty.
type Labels [8]string

// A Family is the series of one metric, or of several that have the same labels.
// Reading takes no lock: a new series replaces the map by a copy, and there are few.
type Family[V any] struct {
	all   atomic.Pointer[map[Labels]V]
	mu    sync.Mutex // held while a series is made
	maker func(Labels) V
}

// NewFamily returns a family whose series are made by maker.
func NewFamily[V any](maker func(Labels) V) *Family[V] { return &Family[V]{maker: maker} }

// Of returns the series with these labels.
func (f *Family[V]) Of(l Labels) V {
	if m := f.all.Load(); m != nil {
		if v, ok := (*m)[l]; ok {
			return v
		}
	}
	return f.add(l)
}

func (f *Family[V]) add(l Labels) V {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := f.all.Load()
	var next map[Labels]V
	if before == nil {
		next = map[Labels]V{}
	} else {
		if v, ok := (*before)[l]; ok {
			return v
		}
		next = maps.Clone(*before)
	}
	for i := range l {
		l[i] = strings.Clone(l[i]) // it may be a part of a request
	}
	v := f.maker(l)
	next[l] = v
	f.all.Store(&next)
	return v
}

// Each calls visit with all series.
func (f *Family[V]) Each(visit func(Labels, V)) {
	if m := f.all.Load(); m != nil {
		for l, v := range *m {
			visit(l, v)
		}
	}
}
