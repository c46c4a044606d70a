package dns

import (
	"context"
	"math/rand/v2"

	miekg "github.com/miekg/dns"
)

// maxAliases is how many aliases are followed within the cluster domain.
const maxAliases = 8

// resolve answers from what is known here: the cluster's names, and what the
// resolvers said before. It returns false, with x.pending set, when the records of
// a name have to be asked for; once they are there, it is called again with them.
func (s *Server) resolve(x *exchange, upstream *response) bool {
	r := &x.reply
	r.Answer, r.Ns, r.Extra = r.Answer[:0], r.Ns[:0], r.Extra[:0]
	qtype := x.question.Qtype
	if qtype == miekg.TypePTR {
		if ptr := s.zone.reverse(x.name); len(ptr) > 0 {
			r.Authoritative = true
			r.Answer = owned(r.Answer, ptr, x.question.Name)
			return true
		}
	}
	name, owner := x.name, x.question.Name
	for aliases := 0; s.zone.contains(name); aliases++ {
		r.Authoritative = true
		found := s.zone.lookup(name)
		switch {
		case found == nil:
			r.Rcode = miekg.RcodeNameError // of the last name in a chain (RFC 6604)
			r.Ns = append(r.Ns, s.zone.soa())
			return true
		case qtype == miekg.TypeANY:
			r.Answer = append(r.Answer, minimal(owner))
			return true
		case found.cname != nil && qtype == miekg.TypeCNAME:
			r.Answer = owned(r.Answer, []miekg.RR{found.cname}, owner)
			return true
		// SRV records of ExternalName Services are not followed, as in CoreDNS.
		case found.cname != nil && qtype != miekg.TypeSRV && aliases < maxAliases && found.cname.Target != name:
			r.Answer = owned(r.Answer, []miekg.RR{found.cname}, owner)
			name, owner = found.cname.Target, found.cname.Target
			continue
		}
		s.records(r, name, owner, qtype, found)
		return true
	}
	if qtype == miekg.TypeANY {
		r.Answer = append(r.Answer, minimal(owner))
		return true
	}
	if upstream == nil {
		x.pending = s.forwarder.key(name, x)
		if upstream = s.forwarder.cached(x.pending); upstream == nil {
			return false
		}
	}
	upstream.writeTo(x, s.forwarder.now())
	return true
}

// resolveUpstream asks for what resolve found missing.
func (s *Server) resolveUpstream(ctx context.Context, x *exchange) {
	s.resolve(x, s.forwarder.ask(ctx, x.pending))
}

// records writes those of one type, or that there are none.
func (s *Server) records(r *miekg.Msg, name, owner string, qtype uint16, found *records) {
	list := found.of(qtype)
	if qtype == miekg.TypeSOA && name == s.zone.name {
		r.Answer = owned(r.Answer, []miekg.RR{s.zone.soa()}, owner)
		return
	}
	if len(list) == 0 {
		r.Ns = append(r.Ns, s.zone.soa())
		return
	}
	first := len(r.Answer)
	r.Answer = owned(r.Answer, list, owner)
	switch qtype {
	case miekg.TypeA, miekg.TypeAAAA:
		// Clients take the first address: let it be another one each time.
		if list := r.Answer[first:]; len(list) > 1 {
			rand.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		}
	case miekg.TypeSRV, miekg.TypeNS:
		r.Extra = append(r.Extra, found.extra...)
	}
}

// minimal is what ANY questions get (RFC 8482).
func minimal(owner string) miekg.RR {
	return &miekg.HINFO{Hdr: header(owner, miekg.TypeHINFO), Cpu: "RFC8482"}
}
