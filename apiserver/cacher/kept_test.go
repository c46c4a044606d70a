package cacher

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
)

// TestEncodedOnce asks for an encoding from many goroutines.
func TestEncodedOnce(t *testing.T) {
	t.Parallel()
	o := &Object{kept: &kept{}}
	var made atomic.Int64
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			if b, err := o.Encoded(JSON, true, func(runtime.Object) ([]byte, error) {
				made.Add(1)
				return []byte("{}"), nil
			}); err != nil || string(b) != "{}" {
				t.Errorf("%q, %v", b, err)
			}
		})
	}
	all.Wait()
	if n := made.Load(); n != 1 {
		t.Errorf("encoded %d times", n)
	}
}

// TestKept fills what is kept: lists get no more room, changes push out the oldest,
// and nothing is left in the end.
func TestKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := &kept{}
		large := func(runtime.Object) ([]byte, error) { return make([]byte, keptBytes/4), nil }
		has := func(o *Object) bool { return o.encodings[JSON].Load() != nil }
		objects := make([]*Object, 6)
		for i := range objects {
			objects[i] = &Object{kept: k}
			now := i == 5
			if _, err := objects[i].Encoded(JSON, now, large); err != nil {
				t.Fatal(err)
			}
		}
		for i, want := range []bool{false, true, true, true, false, true} {
			if has(objects[i]) != want {
				t.Errorf("object %d keeps its encoding: %v, want %v", i, !want, want)
			}
		}
		<-time.After(2 * keptAge)
		synctest.Wait()
		for i, o := range objects {
			if has(o) {
				t.Errorf("object %d keeps its encoding for ever", i)
			}
		}
		if k.bytes != 0 || k.timing || k.queue != nil {
			t.Errorf("%d bytes are accounted for", k.bytes)
		}
	})
}
