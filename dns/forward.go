package dns

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	miekg "github.com/miekg/dns"
	"golang.org/x/sync/singleflight"

	"github.com/periplus/periplus/base"
)

// Times of one question. A resolver that does not answer costs the first wait,
// not a client's five seconds: the next one is asked beside it, and whoever
// answers first counts.
const (
	firstWait    = 400 * time.Millisecond // before the second attempt; then doubled
	questionTime = 4500 * time.Millisecond
	attempts     = 3 // of a lonely resolver
	suspectTime  = 10 * time.Second
)

// A forwarder asks upstream resolvers.
type forwarder struct {
	upstreams *upstreams
	stubs     map[string][]*server // by domain
	memory    memory
	flights   singleflight.Group
	log       *slog.Logger
	now       func() time.Time
}

func newForwarder(u *upstreams, stubs map[string][]netip.AddrPort, log *slog.Logger) *forwarder {
	f := &forwarder{upstreams: u, stubs: map[string][]*server{}, memory: newMemory(), log: log, now: time.Now}
	for domain, addrs := range stubs {
		f.stubs[domain] = sameServers(nil, addrs)
	}
	return f
}

// key is what has to be asked for the sake of one client.
func (f *forwarder) key(name string, x *exchange) key {
	k := key{name: name, qtype: x.question.Qtype}
	if x.edns != nil && x.edns.Do() {
		k.flags |= flagDNSSEC
	}
	if x.request.CheckingDisabled {
		k.flags |= flagChecking
	}
	return k
}

// cached returns what was said before and still holds, else nil.
func (f *forwarder) cached(k key) *response { return f.memory.get(k, f.now()) }

// ask returns what the resolvers say. Clients who ask the same at the same time
// share one question.
func (f *forwarder) ask(ctx context.Context, k key) *response {
	id := fmt.Sprintf("%d %d %s", k.qtype, k.flags, k.name)
	v, _, _ := f.flights.Do(id, func() (any, error) {
		if r := f.cached(k); r != nil {
			return r, nil
		}
		r := f.race(ctx, k)
		f.memory.put(k, r)
		return r, nil
	})
	return v.(*response)
}

// servers returns who is to be asked for a name.
func (f *forwarder) servers(name string) ([]*server, error) {
	if len(f.stubs) > 0 {
		for at, end := 0, false; !end; at, end = miekg.NextLabel(name, at) {
			if list := f.stubs[name[at:]]; list != nil {
				return list, nil
			}
		}
	}
	return f.upstreams.current(f.now())
}

// order puts those first that answered the last time, and repeats until there
// are enough attempts.
func (f *forwarder) order(list []*server) []*server {
	now := f.now().UnixNano()
	out := slices.Clone(list)
	slices.SortStableFunc(out, func(a, b *server) int {
		sa, sb := a.suspect.Load() > now, b.suspect.Load() > now
		switch {
		case sa == sb:
			return 0
		case sa:
			return 1
		}
		return -1
	})
	n := len(out)
	for len(out) < max(attempts, 2*n) {
		out = append(out, out[len(out)-n])
	}
	return out
}

type attempt struct {
	server *server
	msg    *miekg.Msg
	err    error
}

// race asks one resolver after the other, without waiting for those that take
// too long, until one gives a good answer.
func (f *forwarder) race(ctx context.Context, k key) *response {
	list, err := f.servers(k.name)
	if err != nil {
		f.log.Warn("Cannot read the resolver configuration", base.KeyPath, f.upstreams.path, base.KeyError, err)
	}
	if len(list) == 0 {
		return failure(miekg.ExtendedErrorCodeNoReachableAuthority, "no upstream resolver in "+f.upstreams.path, f.now())
	}
	var running sync.WaitGroup
	defer running.Wait()
	ctx, cancel := context.WithTimeout(ctx, questionTime)
	defer cancel()

	order := f.order(list)
	results := make(chan attempt, len(order))
	failed := map[*server]error{}
	waiting := map[*server]int{}
	started := map[*server]int{} // the number of the first attempt
	open, begun := 0, 0
	next := func() bool {
		for len(order) > 0 {
			s := order[0]
			order = order[1:]
			if failed[s] != nil {
				continue
			}
			waiting[s]++
			open++
			begun++
			if started[s] == 0 {
				started[s] = begun
			}
			running.Go(func() {
				m, err := exchangeWith(ctx, s.addr, k)
				results <- attempt{s, m, err}
			})
			return true
		}
		return false
	}
	next()
	wait := firstWait
	timer := time.NewTimer(wait)
	defer timer.Stop()
	var refusal *miekg.Msg
	var last error
	for open > 0 {
		select {
		case a := <-results:
			open--
			waiting[a.server]--
			switch {
			case a.err == nil && (a.msg.Rcode == miekg.RcodeSuccess || a.msg.Rcode == miekg.RcodeNameError):
				f.answered(a.server)
				for s, n := range waiting { // those who had more time than the winner
					if n > 0 && started[s] < started[a.server] {
						f.suspect(s, errors.New("another one that was asked later was faster"))
					}
				}
				return newResponse(a.msg, f.now())
			case a.err == nil:
				f.answered(a.server)
				refusal, last = a.msg, fmt.Errorf("it answers %s", miekg.RcodeToString[a.msg.Rcode])
			case ctx.Err() == nil:
				last = a.err
				f.suspect(a.server, a.err)
			default:
				last = a.err
			}
			failed[a.server] = last
			next()
		case <-timer.C:
			if next() {
				wait *= 2
				timer.Reset(wait)
			}
		case <-ctx.Done():
			for s, n := range waiting {
				if n > 0 && errors.Is(ctx.Err(), context.DeadlineExceeded) {
					f.suspect(s, ctx.Err())
				}
			}
			if refusal != nil {
				return newResponse(refusal, f.now())
			}
			return failure(miekg.ExtendedErrorCodeNoReachableAuthority, fmt.Sprintf("no answer from %s", names(list)), f.now())
		}
	}
	if refusal != nil {
		return newResponse(refusal, f.now())
	}
	return failure(miekg.ExtendedErrorCodeNetworkError, fmt.Sprintf("no answer from %s: %v", names(list), last), f.now())
}

func names(list []*server) string {
	var out []string
	for _, s := range list {
		out = append(out, s.addr.String())
	}
	return strings.Join(out, ", ")
}

// suspect makes a resolver the last choice for a while.
func (f *forwarder) suspect(s *server, why error) {
	s.suspect.Store(f.now().Add(suspectTime).UnixNano())
	if !s.down.Swap(true) {
		f.log.Warn("Upstream resolver does not answer", base.KeyAddress, s.addr.String(), base.KeyError, why)
	}
}

func (f *forwarder) answered(s *server) {
	if s.suspect.Load() != 0 {
		s.suspect.Store(0)
	}
	if s.down.Load() && s.down.Swap(false) {
		f.log.Info("Upstream resolver answers again", base.KeyAddress, s.addr.String())
	}
}

// exchangeWith asks one resolver: over UDP, over TCP if the answer is too long,
// without EDNS if it does not know that.
func exchangeWith(ctx context.Context, to netip.AddrPort, k key) (*miekg.Msg, error) {
	q := &miekg.Msg{Question: []miekg.Question{{Name: k.name, Qtype: k.qtype, Qclass: miekg.ClassINET}}}
	q.RecursionDesired = true
	q.CheckingDisabled = k.flags&flagChecking != 0
	q.SetEdns0(maxUDP, k.flags&flagDNSSEC != 0)
	m, err := send(ctx, "udp", to, q)
	if err == nil && m.Rcode == miekg.RcodeFormatError {
		q.Extra = nil
		m, err = send(ctx, "udp", to, q)
	}
	if err == nil && m.Truncated {
		m, err = send(ctx, "tcp", to, q)
	}
	return m, err
}

// send asks over a socket of its own, whose port is hard to guess as is the
// identifier (RFC 5452).
func send(ctx context.Context, network string, to netip.AddrPort, q *miekg.Msg) (*miekg.Msg, error) {
	q.Id = miekg.Id()
	conn, err := (&net.Dialer{}).DialContext(ctx, network, to.String())
	if err != nil {
		return nil, err
	}
	c := &miekg.Conn{Conn: conn, UDPSize: maxUDP}
	defer c.Close()
	if deadline, ok := ctx.Deadline(); ok {
		_ = c.SetDeadline(deadline)
	}
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if err := c.WriteMsg(q); err != nil {
		return nil, err
	}
	for {
		m, err := c.ReadMsg()
		var network net.Error
		switch {
		case errors.As(err, &network) || m == nil:
			return nil, err
		case m.Id != q.Id || !m.Response || !sameQuestion(m, q) || err != nil && !m.Truncated:
			if _, stream := conn.(*net.TCPConn); stream {
				return nil, fmt.Errorf("%s: the answer is for another question: %w", to, cmp.Or(err, miekg.ErrId))
			}
			// Not from whom we asked, or to an earlier question: wait for the right one.
		default:
			return m, nil
		}
	}
}

// sameQuestion allows for resolvers that refuse without repeating the question.
func sameQuestion(m, q *miekg.Msg) bool {
	if len(m.Question) == 0 {
		return m.Rcode != miekg.RcodeSuccess && m.Rcode != miekg.RcodeNameError
	}
	a, b := m.Question[0], q.Question[0]
	return len(m.Question) == 1 && a.Qtype == b.Qtype && a.Qclass == b.Qclass && strings.EqualFold(a.Name, b.Name)
}
