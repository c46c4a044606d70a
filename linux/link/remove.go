package link

import (
	"errors"
	"fmt"
	"sync"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// removals gathers interfaces that are to be removed. For each the kernel waits
// until no processor looks at it any more, which takes up to 100 ms on a busy
// machine and holds up every other change of interfaces; but it waits once for
// all interfaces of a group. So whoever comes while a removal is on its way waits
// for the next one, which takes all that are waiting.
//
//	Remove(a) ──► removes a ──────────────────►│
//	   Remove(b) ──► waiting: b                │ removes b, c
//	      Remove(c) ──► waiting: b, c          │
type removals struct {
	turn sync.Mutex // held while removing

	mu      sync.Mutex // guards waiting
	waiting []*removal
}

// removal is one interface; its result is set when turn has been had.
type removal struct {
	name string
	done bool
	err  error
}

// doomed is the group of the interfaces that go at once.
const doomed = 0x70657269

// Remove removes an interface; one that is not there is no error.
func (c *Conn) Remove(name string) error {
	own := &removal{name: name}
	c.removals.mu.Lock()
	c.removals.waiting = append(c.removals.waiting, own)
	c.removals.mu.Unlock()

	c.removals.turn.Lock()
	defer c.removals.turn.Unlock()
	if !own.done {
		c.removals.mu.Lock()
		all := c.removals.waiting
		c.removals.waiting = nil
		c.removals.mu.Unlock()
		c.remove(all)
	}
	return own.err
}

func (c *Conn) remove(all []*removal) {
	var together []netlink.Link
	for _, r := range all {
		l, err := c.get(r.name)
		r.done = true
		if errors.Is(err, ErrNotFound) {
			continue
		}
		if r.err = err; err == nil {
			together = append(together, l)
		}
	}
	if len(together) > 1 && c.removeGroup(together) == nil {
		return
	}
	failed := make(map[string]error)
	for _, l := range together {
		if err := c.h.LinkDel(l); err != nil && !errors.Is(err, unix.ENODEV) {
			failed[l.Attrs().Name] = fmt.Errorf("remove interface %s: %w", l.Attrs().Name, err)
		}
	}
	for _, r := range all {
		r.err = errors.Join(r.err, failed[r.name])
	}
}

// removeGroup removes interfaces with one request.
func (c *Conn) removeGroup(links []netlink.Link) error {
	for _, l := range links {
		if err := c.h.LinkSetGroup(l, doomed); err != nil && !errors.Is(err, unix.ENODEV) {
			return err
		}
	}
	return c.ns.Do(func() error {
		req := nl.NewNetlinkRequest(unix.RTM_DELLINK, unix.NLM_F_ACK)
		req.AddData(nl.NewIfInfomsg(unix.AF_UNSPEC))
		req.AddData(nl.NewRtAttr(unix.IFLA_GROUP, nl.Uint32Attr(doomed)))
		_, err := req.Execute(unix.NETLINK_ROUTE, 0)
		if errors.Is(err, unix.ENODEV) {
			return nil // another connection has removed them
		}
		return err
	})
}
