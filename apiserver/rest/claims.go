package rest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/uuid"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/periplus/periplus/apiserver/cacher"
	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/store"
)

// mostOps is how many writes fit into a transaction of any etcd.
const mostOps = 128

// A contested claim could not be made: another record lies in its place.
type contested struct {
	claim registry.Claim
	entry store.Entry
}

func (c *contested) Error() string { return fmt.Sprintf("%s is somebody else's", c.entry.Key) }

// claims are what a write makes and removes beside its object.
//
//	1  records that the new state claims and the old one does not are to be made, those
//	   that only the old one claims are to be removed
//	2  all go into one transaction with the object
//	3  a record in the way that is void is removed; one that is somebody's is an error
//	   of type *contested, and the write begins anew with another choice
type claims struct {
	objects *Objects
	by      registry.Claimant
	make    map[string]registry.Claim // by key
	drop    []registry.Claim
	pending []func() // withdraw what was announced to caches
}

// claims returns what is to be made and removed when an object changes from old to obj,
// either of which may be nil; nil if nothing is.
func (o *Objects) claims(obj, old runtime.Object) *claims {
	by := o.Resource.Hooks.Claims
	if by == nil {
		return nil
	}
	c := &claims{objects: o, by: by, make: map[string]registry.Claim{}}
	if obj != nil {
		for _, claim := range by.Claims(obj) {
			if key := o.server.claimKey(claim); key != "" {
				c.make[key] = claim
			}
		}
	}
	if old != nil {
		for _, claim := range by.Claims(old) {
			key := o.server.claimKey(claim)
			if _, both := c.make[key]; both {
				delete(c.make, key)
			} else if key != "" {
				c.drop = append(c.drop, claim)
			}
		}
	}
	if len(c.make)+len(c.drop) == 0 {
		return nil
	}
	return c
}

// claimKey returns where a claim's record is stored, "" if it is not.
func (s *Server) claimKey(c registry.Claim) string {
	if c.Object == nil {
		return c.Key
	}
	o := s.Objects(c.GVR)
	if o == nil || o.Cache == nil {
		return ""
	}
	meta := metaOf(c.Object)
	key, err := o.key(meta.Namespace, meta.Name)
	if err != nil {
		return ""
	}
	return key
}

// commit stores an object's new value, nil to remove it, with all its claims.
func (c *claims) commit(ctx context.Context, key string, value []byte, mod int64) (int64, error) {
	for {
		rev, err := c.try(ctx, store.Op{Key: key, Value: value, Mod: mod})
		var conflict *store.ConflictError
		if !errors.As(err, &conflict) || conflict.Current.Key == key {
			return rev, err
		}
		if again, err := c.settle(ctx, conflict.Current); err != nil || !again {
			return 0, err
		}
	}
}

// settle looks at what is in the way of a claim and reports whether to try again.
func (c *claims) settle(ctx context.Context, current store.Entry) (again bool, err error) {
	if err := c.objects.set.Sync(ctx); err != nil {
		return false, err
	}
	claim, making := c.make[current.Key]
	if !making {
		return true, nil // a record that was to be removed is another now, which the cache shows
	}
	record := registry.Record{Value: current.Value}
	if claim.Object != nil {
		seen, err := c.objects.server.Objects(claim.GVR).Cache.Decode(current)
		if err != nil || len(seen.Meta.GetFinalizers()) > 0 {
			return false, &contested{claim, current}
		}
		record.Object = seen.Obj
	}
	if !c.by.Void(ctx, record, claim) {
		return false, &contested{claim, current}
	}
	_, err = c.objects.store.Delete(ctx, current.Key, current.Mod)
	var conflict *store.ConflictError
	if errors.As(err, &conflict) {
		err = nil // it is another now
	}
	return err == nil, err
}

// try does the transaction once. What does not fit into one goes before it, or after:
// claims without an object are void, so that nothing is lost.
func (c *claims) try(ctx context.Context, object store.Op) (rev int64, err error) {
	made, err := c.makes()
	defer func() {
		if err != nil {
			for _, withdraw := range c.pending {
				withdraw()
			}
		}
		c.pending = nil
	}()
	if err != nil {
		return 0, err
	}
	for len(made) > mostOps-1 {
		early := made[len(made)-min(mostOps, len(made)-mostOps+1):]
		if _, err := c.objects.store.Commit(ctx, early...); err != nil {
			return 0, err
		}
		for _, op := range early {
			delete(c.make, op.Key)
		}
		made = made[:len(made)-len(early)]
	}
	ops := append([]store.Op{object}, made...)
	drops := c.drops()
	now := min(len(drops), mostOps-len(ops))
	if rev, err = c.objects.store.Commit(ctx, append(ops, drops[:now]...)...); err != nil {
		return 0, err
	}
	for late := range slices.Chunk(drops[now:], mostOps) {
		_, _ = c.objects.store.Commit(ctx, late...) // else they are void
	}
	return rev, nil
}

// makes returns the records to be made, in the order of their keys, and announces
// objects among them to their caches.
func (c *claims) makes() ([]store.Op, error) {
	var out []store.Op
	for _, key := range slices.Sorted(maps.Keys(c.make)) {
		claim := c.make[key]
		op := store.Op{Key: key, Value: claim.Value}
		if claim.Object != nil {
			o := c.objects.server.Objects(claim.GVR)
			obj, value, err := o.record(claim.Object)
			if err != nil {
				return nil, err
			}
			p := o.Cache.Expect(key, value, obj)
			c.pending = append(c.pending, func() { o.Cache.Forget(key, p) })
			op.Value = value
		}
		out = append(out, op)
	}
	return out, nil
}

// record returns a new object of the server's own as it is stored.
func (o *Objects) record(obj runtime.Object) (runtime.Object, []byte, error) {
	obj = obj.DeepCopyObject()
	if e := o.server.endpointOf(o.Resource.GVR); e != nil {
		if err := e.track(e.blank, obj, nil, "", ownManager); err != nil {
			return nil, nil, err
		}
	}
	o.Resource.Strategy.Default(obj)
	meta := metaOf(obj)
	meta.UID, meta.CreationTimestamp = uuid.NewUUID(), metav1.NewTime(time.Now().UTC().Truncate(time.Second))
	o.Resource.Strategy.PrepareForCreate(context.Background(), obj)
	value, err := o.codec.Encode(obj)
	return obj, value, err
}

// drops returns the records to be removed. An object that somebody else has made in
// the place of one, or keeps by a finalizer, stays.
func (c *claims) drops() []store.Op {
	var out []store.Op
	for _, claim := range c.drop {
		key := c.objects.server.claimKey(claim)
		if claim.Object == nil {
			out = append(out, store.Op{Key: key, Mod: store.Any})
			continue
		}
		current := c.objects.server.Objects(claim.GVR).Cache.Get(key)
		if current != nil && len(current.Meta.GetFinalizers()) == 0 && c.by.Mine(claim, current.Obj) {
			out = append(out, store.Op{Key: key, Mod: current.Rev})
		}
	}
	return out
}

// Reclaim brings the claims of a resource in order: it makes those that objects lack,
// as in a cluster of before there were any, and removes void ones.
func (s *Server) Reclaim(ctx context.Context, gvr schema.GroupVersionResource) error {
	o := s.Objects(gvr)
	if o == nil || o.Cache == nil || o.Resource.Hooks.Claims == nil {
		return nil
	}
	by := o.Resource.Hooks.Claims
	list, err := o.store.List(ctx, by.Records(), store.ListOptions{})
	if err == nil {
		err = o.set.Sync(ctx)
	}
	if err != nil {
		return storeError(err)
	}
	there := map[string]store.Entry{}
	for _, e := range list.Entries {
		there[e.Key] = e
	}
	made, removed := 0, 0
	var failed error
	o.Cache.Snapshot().Each("", "", func(obj *cacher.Object) bool {
		for _, claim := range by.Claims(obj.Obj) {
			key := s.claimKey(claim)
			_, known := there[key]
			delete(there, key)
			if known || key == "" || claim.Object != nil && s.Objects(claim.GVR).Cache.Get(key) != nil {
				continue
			}
			missing := &claims{objects: o, by: by, make: map[string]registry.Claim{key: claim}}
			ops, err := missing.makes()
			if err == nil {
				_, err = o.store.Commit(ctx, ops...)
			}
			var conflict *store.ConflictError
			if failed = err; errors.As(err, &conflict) {
				failed = nil // another server was faster
			}
			if err != nil {
				for _, withdraw := range missing.pending {
					withdraw()
				}
			} else {
				made++
			}
			if failed != nil {
				return false
			}
		}
		return true
	})
	if failed != nil {
		return storeError(failed)
	}
	for key, e := range there {
		if strings.HasPrefix(key, by.Records()) && by.Void(ctx, registry.Record{Value: e.Value}, by.Parse(key)) {
			if _, err := o.store.Delete(ctx, key, e.Mod); err == nil {
				removed++
			}
		}
	}
	if made+removed > 0 {
		s.config.Log.Info("claims of addresses and ports are in order", base.KeyKind, gvr.Resource, "made", made, "removed", removed)
	}
	return nil
}
