package ownership

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Objects of the same shape, written by the same clients, have the same sets. A table
// of those seen lately lets them share one. It is bounded by two generations: what is
// not asked for while the young one fills is forgotten (objects keep what they hold).
type table struct {
	mu         sync.Mutex
	young, old map[string]*metav1.FieldsV1
	size       int // of the sets in young, bytes
}

const generation = 256 << 10

var seen table

// get returns the set, the same for the same bytes while it is known.
func (t *table) get(raw []byte) *metav1.FieldsV1 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if f := t.young[string(raw)]; f != nil {
		return f
	}
	f := t.old[string(raw)]
	name := string(raw)
	if f == nil {
		f = metav1.NewFieldsV1(name)
	}
	if t.size += 2*len(raw) + 64; t.young == nil || t.size > generation {
		t.old, t.young, t.size = t.young, map[string]*metav1.FieldsV1{}, 2*len(raw)+64
	}
	t.young[name] = f
	return f
}

// Share lets entries that were just read from the store share their sets with others.
func Share(entries []metav1.ManagedFieldsEntry) {
	for i := range entries {
		if f := entries[i].FieldsV1; f != nil {
			entries[i].FieldsV1 = seen.get(f.GetRawBytes())
		}
	}
}
