package cacher

import (
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/periplus/periplus/store"
)

// names decodes objects of which nothing but the name is stored.
type names struct{}

func (names) Decode(stored []byte) (runtime.Object, error) {
	cm := &corev1.ConfigMap{}
	cm.Name = string(stored)
	return cm, nil
}

// TestBurstIsForgotten lets many changes become too old while nothing else happens: a
// watch from before them is refused, one from among those that are kept is not.
func TestBurstIsForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCache(Root+"maps/", names{}, slog.New(slog.DiscardHandler), &kept{})
		const changes = 1000
		rev := int64(0)
		for range changes {
			rev++
			key := fmt.Sprintf("%smaps/%d", Root, rev)
			c.apply([]store.Event{{Entry: store.Entry{Key: key, Value: []byte("x"), Create: rev, Mod: rev}}}, rev)
		}
		behind, err := c.Watch(0)
		if err != nil {
			t.Fatal(err)
		}
		if events, _, err := behind.Poll(make([]Event, 0, 1)); err != nil || len(events) != 1 {
			t.Fatalf("%d events, %v", len(events), err)
		}
		<-time.After(ringAge + ringPause)
		synctest.Wait()
		if _, _, err := behind.Poll(nil); !errors.Is(err, ErrTooOld) {
			t.Errorf("a watch that is behind: %v", err)
		}
		if _, err := c.Watch(rev - ringFloor - 1); !errors.Is(err, ErrTooOld) {
			t.Errorf("a watch from before what is kept: %v", err)
		}
		w, err := c.Watch(rev - ringFloor)
		if err != nil {
			t.Fatal(err)
		}
		events, _, err := w.Poll(make([]Event, 0, changes))
		if err != nil || len(events) != ringFloor || events[0].Object.Rev != rev-ringFloor+1 {
			t.Errorf("%d events are kept, %v", len(events), err)
		}
		c.mu.RLock()
		defer c.mu.RUnlock()
		if c.aging {
			t.Error("a timer is set for changes that stay")
		}
	})
}

// TestLeft is made once, with all but the revision shared.
func TestLeft(t *testing.T) {
	t.Parallel()
	before, err := newObject(store.Entry{Key: "a", Value: []byte("x"), Mod: 5}, &corev1.ConfigMap{Data: map[string]string{"k": "v"}})
	if err != nil {
		t.Fatal(err)
	}
	after, err := newObject(store.Entry{Key: "a", Mod: 9}, &corev1.ConfigMap{})
	if err != nil {
		t.Fatal(err)
	}
	e := Event{Object: after, Prev: before}
	left := e.Left()
	if left != e.Left() || left.Rev != 9 || left.Meta.GetResourceVersion() != "9" || left.Obj.(*corev1.ConfigMap).Data["k"] != "v" {
		t.Errorf("left: %+v", left)
	}
	if before.Meta.GetResourceVersion() != "5" {
		t.Error("the state before has been changed")
	}
}
