package etcd

import (
	"sync"
	"time"
	_ "unsafe" // for go:linkname
)

// watchResyncPeriod is how often etcd looks for watches that lag behind. It is
// a variable for etcd's own tests, and the only thing in an idle cluster that
// wakes up ten times a second: two thirds of the CPU time that idling costs.
// See docs/adr/0011-why-etcd-resyncs-once-a-second.md.
//
//go:linkname watchResyncPeriod go.etcd.io/etcd/server/v3/storage/mvcc.watchResyncPeriod
var watchResyncPeriod time.Duration

// calm makes it a second, which delays watches that begin in the past
// and those that lag because their reader is slow by at most that much.
var calm = sync.OnceFunc(func() { watchResyncPeriod = time.Second })
