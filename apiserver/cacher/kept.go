package cacher

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
)

// Encodings are kept with their objects for keptAge, and keptBytes of them in all: as
// many as make lists of some thousand objects, and the changes that watchers read just
// now, a matter of copying bytes. More would double what a large cluster takes of memory.
const (
	keptBytes = 32 << 20
	keptAge   = 5 * time.Minute
)

// kept are the encodings that objects hold, oldest first.
type kept struct {
	making [64]sync.Mutex // by revision: an encoding is made once however many want it

	mu     sync.Mutex
	queue  []keptEncoding
	bytes  int
	timing bool // a timer is set for the oldest
}

type keptEncoding struct {
	o    *Object
	f    Format
	size int
	at   time.Time
}

// lock is what the maker of an object's encoding holds.
func (k *kept) lock(o *Object) *sync.Mutex {
	return &k.making[uint64(o.Rev)%uint64(len(k.making))] //nolint:gosec // revisions are positive
}

// store keeps an encoding. When there is no room the oldest go if the new one is of a
// change that happens now; else it is not kept.
func (k *kept) store(o *Object, f Format, b []byte, now bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.bytes+len(b) > keptBytes && !now {
		return
	}
	for k.bytes+len(b) > keptBytes && len(k.queue) > 0 {
		k.dropLocked()
	}
	o.encodings[f].Store(&b)
	k.queue = append(k.queue, keptEncoding{o, f, len(b), time.Now()})
	k.bytes += len(b)
	if !k.timing {
		k.timing = true
		time.AfterFunc(keptAge, k.age)
	}
}

func (k *kept) dropLocked() {
	e := &k.queue[0]
	e.o.encodings[e.f].Store(nil)
	k.bytes -= e.size
	*e = keptEncoding{}
	if k.queue = k.queue[1:]; len(k.queue) == 0 {
		k.queue = nil
	}
}

// age lets go of encodings that have been kept for long, and sets the timer for the
// next as long as there are any.
func (k *kept) age() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for len(k.queue) > 0 && time.Since(k.queue[0].at) >= keptAge {
		k.dropLocked()
	}
	if k.timing = len(k.queue) > 0; k.timing {
		time.AfterFunc(keptAge, k.age)
	}
}

// Encoded returns the object in a format, as encode makes it. It is kept for others;
// now says that it is of a change that others are about to read, too.
func (o *Object) Encoded(f Format, now bool, encode func(runtime.Object) ([]byte, error)) ([]byte, error) {
	if b := o.encodings[f].Load(); b != nil {
		return *b, nil
	}
	if o.kept == nil {
		b, err := encode(o.Obj)
		if err == nil {
			o.encodings[f].Store(&b)
		}
		return b, err
	}
	l := o.kept.lock(o)
	l.Lock()
	defer l.Unlock()
	if b := o.encodings[f].Load(); b != nil {
		return *b, nil
	}
	b, err := encode(o.Obj)
	if err == nil {
		o.kept.store(o, f, b, now)
	}
	return b, err
}
