package dns

import (
	"time"

	miekg "github.com/miekg/dns"
	"k8s.io/utils/lru"
)

// Bounds of the cache. Nothing is kept longer than maxAge, whatever its owner
// says, so that a changed record is seen soon; failures are kept long enough to
// spare the resolvers a storm of repetitions (RFC 9520).
const (
	cacheEntries = 4096
	cacheMessage = 4096 // bytes
	maxAge       = 30 * time.Second
	failureAge   = time.Second
)

// A key is what upstream resolvers are asked: answers differ by these.
type key struct {
	name  string // in lower case
	qtype uint16
	flags uint8
}

const (
	flagDNSSEC   = 1 << iota // the client wants signatures
	flagChecking             // and checks them itself
)

// A response is what upstream resolvers said. Its records are immutable.
type response struct {
	rcode             int
	authentic         bool
	answer, ns, extra []miekg.RR

	at    time.Time // when it came
	until time.Time // it may be used until then; the zero time: only by those who waited for it

	// A failure has no records but a reason (RFC 8914).
	why  string
	code uint16
}

func failure(code uint16, why string, now time.Time) *response {
	return &response{rcode: miekg.RcodeServerFailure, code: code, why: why, at: now, until: now.Add(failureAge)}
}

// newResponse keeps what is in a message, except what belongs to one hop.
func newResponse(m *miekg.Msg, now time.Time) *response {
	r := &response{rcode: m.Rcode & 0xF, authentic: m.AuthenticatedData, answer: m.Answer, ns: m.Ns, at: now}
	for _, rr := range m.Extra {
		if rr.Header().Rrtype != miekg.TypeOPT {
			r.extra = append(r.extra, rr)
		}
	}
	if m.Len() <= cacheMessage {
		if age := lifetime(m.Rcode, r); age > 0 {
			r.until = now.Add(min(age, maxAge))
		}
	}
	return r
}

// lifetime is how long a response may be kept: the shortest of its records'
// times, and for negative ones what the SOA record says (RFC 2308 §5).
func lifetime(rcode int, r *response) time.Duration {
	switch rcode {
	case miekg.RcodeSuccess, miekg.RcodeNameError:
	default:
		return failureAge
	}
	shortest := uint32(1 << 31)
	negative := rcode == miekg.RcodeNameError || !final(r.answer)
	soa := false
	for _, list := range [][]miekg.RR{r.answer, r.ns, r.extra} {
		for _, rr := range list {
			shortest = min(shortest, rr.Header().Ttl)
			if s, ok := rr.(*miekg.SOA); ok {
				soa = true
				if negative {
					shortest = min(shortest, s.Minttl)
				}
			}
		}
	}
	if negative && !soa {
		return 0
	}
	return time.Duration(shortest) * time.Second
}

// final says whether an answer has more than aliases.
func final(answer []miekg.RR) bool {
	for _, rr := range answer {
		if t := rr.Header().Rrtype; t != miekg.TypeCNAME && t != miekg.TypeDNAME && t != miekg.TypeRRSIG {
			return true
		}
	}
	return false
}

// writeTo completes an answer, after the aliases that are in it already.
func (r *response) writeTo(x *exchange, now time.Time) {
	if r.why != "" {
		x.fail(r.code, r.why)
		return
	}
	m := &x.reply
	age := uint32(max(0, now.Sub(r.at)) / time.Second)
	m.Rcode = r.rcode
	// Our own alias in front is not signed; and only those get the bit who understand it (RFC 6840 §5.8).
	m.AuthenticatedData = r.authentic && len(m.Answer) == 0 &&
		(x.request.AuthenticatedData || x.edns != nil && x.edns.Do())
	m.Answer = aged(m.Answer, r.answer, age)
	m.Ns = aged(m.Ns, r.ns, age)
	m.Extra = aged(m.Extra, r.extra, age)
}

// aged appends records with what is left of their time.
func aged(to, list []miekg.RR, age uint32) []miekg.RR {
	if age == 0 {
		return append(to, list...)
	}
	for _, rr := range list {
		rr = miekg.Copy(rr)
		h := rr.Header()
		h.Ttl -= min(age, h.Ttl)
		to = append(to, rr)
	}
	return to
}

// A memory keeps responses; the least recently used one makes room.
type memory struct{ lru *lru.Cache }

func newMemory() memory { return memory{lru.New(cacheEntries)} }

func (m memory) get(k key, now time.Time) *response {
	v, ok := m.lru.Get(k)
	if !ok {
		return nil
	}
	if r := v.(*response); now.Before(r.until) {
		return r
	}
	return nil
}

func (m memory) put(k key, r *response) {
	if !r.until.IsZero() {
		m.lru.Add(k, r)
	}
}
