package crash

import (
	"fmt"
	"maps"
	"slices"
	"sync"
)

// absent is the state of an object that does not exist.
const absent = ""

// An entry is what is known of one object, which has a single writer.
type entry struct {
	acked   string   // its state after the last answer
	unknown []string // states asked for since then, without an answer
}

// A ledger is what the server has promised.
type ledger struct {
	mu      sync.Mutex
	entries map[string]entry // guarded by mu
	answers int              // guarded by mu
	goal    int              // guarded by mu: answers after which reached is closed
	reached chan struct{}
}

func newLedger() *ledger {
	return &ledger{entries: map[string]entry{}}
}

// after returns a channel that is closed when n more answers have come.
func (l *ledger) after(n int) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.goal, l.reached = l.answers+n, make(chan struct{})
	return l.reached
}

func (l *ledger) state(object string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.entries[object].acked
}

// ask is called before a request that brings the object into a state, answered
// when it was acknowledged.
func (l *ledger) ask(object, state string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entries[object]
	e.unknown = append(e.unknown, state)
	l.entries[object] = e
}

func (l *ledger) answered(object, state string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries[object] = entry{acked: state}
	if l.answers++; l.answers == l.goal {
		close(l.reached)
	}
}

// compare returns what differs from the promises, and takes what was found as the
// new state.
func (l *ledger) compare(found map[string]string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var wrong []string
	for _, object := range slices.Sorted(maps.Keys(l.entries)) {
		e := l.entries[object]
		if f := found[object]; f != e.acked && !slices.Contains(e.unknown, f) {
			wrong = append(wrong, fmt.Sprintf("%s is %q, acknowledged %q, asked for %q", object, f, e.acked, e.unknown))
		}
		l.entries[object] = entry{acked: found[object]}
	}
	for object := range found {
		if _, ok := l.entries[object]; !ok {
			wrong = append(wrong, object+" exists and nobody made it")
		}
	}
	return wrong
}

// size is the number of objects that exist, and of answers so far.
func (l *ledger) size() (objects, answers int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.entries {
		if e.acked != absent {
			objects++
		}
	}
	return objects, l.answers
}
