package controllers

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

// expectationLife bounds how long a child that never shows up (created and
// deleted while a watch was broken) can hold its owner back.
const expectationLife = 5 * time.Minute

// Expectations remember, for each owner, the children that its controller has
// created or deleted and that the cache has not shown yet. While there are any,
// the controller must neither create nor delete: it would count wrong.
//
//	Begin ─► create, create … Created(uid) ─► End     the reconcile's own goroutine
//	                  Gone(uid)                       the child's informer handler
//	                  Pending(key, cached)            the next reconcile
//
// Children are tracked by UID, never counted, so it does not matter who else
// creates children or in which order events arrive.
type Expectations struct {
	clock clock.PassiveClock

	mu    sync.Mutex // guards owner
	owner map[Key]*expected
}

type expected struct {
	created map[types.UID]time.Time // until seen in the cache
	deleted map[types.UID]time.Time // until out of the cache, or terminating in it
	gone    map[types.UID]bool      // seen deleted while the batch runs; nil when none runs
}

// NewExpectations returns expectations for one kind of owner.
func NewExpectations(c clock.PassiveClock) *Expectations {
	return &Expectations{clock: c, owner: map[Key]*expected{}}
}

func (e *Expectations) ofLocked(key Key) *expected {
	x := e.owner[key]
	if x == nil {
		x = &expected{created: map[types.UID]time.Time{}, deleted: map[types.UID]time.Time{}}
		e.owner[key] = x
	}
	return x
}

// Begin opens a batch of creations for key: deletions seen until End are kept, for
// a child may come and go before its creation has returned.
func (e *Expectations) Begin(key Key) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ofLocked(key).gone = map[types.UID]bool{}
}

// Created says that a child was created.
func (e *Expectations) Created(key Key, uid types.UID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	x := e.ofLocked(key)
	if uid != "" && !x.gone[uid] {
		x.created[uid] = e.clock.Now()
	}
}

// Deleted says that a child's deletion was accepted.
func (e *Expectations) Deleted(key Key, uid types.UID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ofLocked(key).deleted[uid] = e.clock.Now()
}

// End closes the batch that Begin opened.
func (e *Expectations) End(key Key) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if x := e.owner[key]; x != nil {
		x.gone = nil
		e.dropEmptyLocked(key, x)
	}
}

// Gone says that the informer saw the child go.
func (e *Expectations) Gone(key Key, uid types.UID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	x := e.owner[key]
	if x == nil {
		return
	}
	delete(x.created, uid)
	if x.gone != nil {
		x.gone[uid] = true
	}
	e.dropEmptyLocked(key, x)
}

// Forget drops everything known about an owner that is gone.
func (e *Expectations) Forget(key Key) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.owner, key)
}

// Pending compares what key's controller did with the children in the cache:
// cached maps each child's UID to whether it is terminating. It returns zero when
// the cache shows all of it, and otherwise how long the rest will be waited for.
// An event of a missing child arrives long before, as a rule.
func (e *Expectations) Pending(key Key, cached map[types.UID]bool) time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	x := e.owner[key]
	if x == nil {
		return 0
	}
	var wait time.Duration
	now := e.clock.Now()
	check := func(set map[types.UID]time.Time, shown func(types.UID) bool) {
		for uid, since := range set {
			left := expectationLife - now.Sub(since)
			if left <= 0 || shown(uid) {
				delete(set, uid)
				continue
			}
			wait = max(wait, left)
		}
	}
	check(x.created, func(uid types.UID) bool { _, ok := cached[uid]; return ok })
	check(x.deleted, func(uid types.UID) bool { terminating, ok := cached[uid]; return !ok || terminating })
	e.dropEmptyLocked(key, x)
	return wait
}

func (e *Expectations) dropEmptyLocked(key Key, x *expected) {
	if len(x.created) == 0 && len(x.deleted) == 0 && x.gone == nil {
		delete(e.owner, key)
	}
}
