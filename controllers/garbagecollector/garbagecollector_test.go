package garbagecollector_test

import (
	"context"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/periplus/periplus/client/objects"
	"github.com/periplus/periplus/controllers"
	"github.com/periplus/periplus/controllers/controllerstest"
	"github.com/periplus/periplus/controllers/garbagecollector"
)

func start(t *testing.T, s *server) {
	controllerstest.Start(t, []controllers.Controller{garbagecollector.Controller()}, func(e *controllers.Env) {
		e.Metadata, e.Objects = s, s
	})
}

// by makes an object owned by the named Owners; a name with "!" blocks its owner.
func by(names ...string) func(*metav1.PartialObjectMetadata) {
	return func(o *metav1.PartialObjectMetadata) {
		for _, n := range names {
			block := n[0] == '!'
			if block {
				n = n[1:]
			}
			o.OwnerReferences = append(o.OwnerReferences, metav1.OwnerReference{
				APIVersion: "example.com/v1", Kind: "Owner", Name: n, UID: types.UID(n), BlockOwnerDeletion: &block,
			})
		}
	}
}

func remove(t *testing.T, s *server, r objects.Resource, name string, policy metav1.DeletionPropagation) {
	t.Helper()
	err := s.Resource(r.GVR).Namespace("ns").Delete(context.Background(), name, metav1.DeleteOptions{PropagationPolicy: &policy})
	if err != nil {
		t.Fatal(err)
	}
}

// TestBackground deletes what an owner leaves behind, through two generations, and
// spares what has another owner.
func TestBackground(t *testing.T) {
	t.Parallel()
	s := newServer(t, owners, things)
	start(t, s)
	s.put(owners, "a", nil)
	s.put(owners, "b", nil)
	s.put(owners, "child", by("a"))
	s.put(things, "grandchild", by("child"))
	s.put(things, "shared", by("a", "b"))
	s.put(things, "free", nil)
	remove(t, s, owners, "a", metav1.DeletePropagationBackground)
	s.until("the grandchild is gone and the shared one has one owner", func() bool {
		shared := s.get(things, "shared")
		return s.get(things, "grandchild") == nil && s.get(owners, "child") == nil && shared != nil && len(shared.OwnerReferences) == 1
	})
	if s.get(things, "free") == nil || s.get(owners, "b") == nil {
		t.Error("something that has no lost owner is gone")
	}
}

// TestForeground keeps the owner until the last dependent that blocks it is gone.
func TestForeground(t *testing.T) {
	t.Parallel()
	s := newServer(t, owners, things)
	start(t, s)
	s.put(owners, "a", nil)
	s.put(things, "one", by("!a"))
	s.put(things, "two", func(o *metav1.PartialObjectMetadata) { by("!a")(o); o.Finalizers = []string{"example.com/slow"} })
	remove(t, s, owners, "a", metav1.DeletePropagationForeground)
	s.until("the slow dependent is terminating", func() bool {
		two := s.get(things, "two")
		return s.get(things, "one") == nil && two.DeletionTimestamp != nil
	})
	if s.get(owners, "a") == nil {
		t.Fatal("the owner went before its dependents")
	}
	s.put(things, "two", func(o *metav1.PartialObjectMetadata) { by("!a")(o); now := metav1.Now(); o.DeletionTimestamp = &now })
	s.until("the owner is gone", func() bool { return s.get(owners, "a") == nil })
	if last := s.deletes[len(s.deletes)-1]; last != "a" {
		t.Errorf("went in the order %v", s.deletes)
	}
}

// TestOrphan lets the dependents live without their owner.
func TestOrphan(t *testing.T) {
	t.Parallel()
	s := newServer(t, owners, things)
	start(t, s)
	s.put(owners, "a", nil)
	s.put(things, "one", by("a"))
	s.put(things, "two", by("!a"))
	remove(t, s, owners, "a", metav1.DeletePropagationOrphan)
	s.until("the owner is gone", func() bool { return s.get(owners, "a") == nil })
	for _, name := range []string{"one", "two"} {
		if o := s.get(things, name); o == nil || len(o.OwnerReferences) != 0 {
			t.Errorf("%s: %v", name, o)
		}
	}
}

// TestCircle deletes owners that block each other.
func TestCircle(t *testing.T) {
	t.Parallel()
	s := newServer(t, owners)
	start(t, s)
	s.put(owners, "a", by("!c"))
	s.put(owners, "b", by("!a"))
	s.put(owners, "c", by("!b"))
	remove(t, s, owners, "a", metav1.DeletePropagationForeground)
	s.until("all are gone", func() bool { return len(s.names()) == 0 })
}

// TestLate starts with objects whose owner went while no collector ran, and gets
// one more whose owner never was.
func TestLate(t *testing.T) {
	t.Parallel()
	s := newServer(t, owners, things)
	s.put(owners, "there", nil)
	s.put(things, "left", by("gone"))
	s.put(things, "kept", by("there"))
	start(t, s)
	s.until("what was left is gone", func() bool { return s.get(things, "left") == nil })
	s.put(things, "new", by("never"))
	s.put(things, "again", by("gone"))
	s.until("the new ones are gone", func() bool { return s.get(things, "new") == nil && s.get(things, "again") == nil })
	if s.get(things, "kept") == nil {
		t.Error("an object with an owner is gone")
	}
}

// TestWrongUID takes an owner of the right name but another UID for absent.
func TestWrongUID(t *testing.T) {
	t.Parallel()
	s := newServer(t, owners, things)
	s.put(owners, "a", func(o *metav1.PartialObjectMetadata) { o.UID = "new-a" })
	s.put(things, "old", by("a"))
	start(t, s)
	s.until("the object of the former owner is gone", func() bool { return s.get(things, "old") == nil })
	if s.get(owners, "a") == nil {
		t.Error("the owner of the same name is gone")
	}
}

func (s *server) names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for k := range s.objects {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
