package dns

import (
	"context"
	"sync"

	miekg "github.com/miekg/dns"
)

// Sizes of messages in bytes. Over UDP no answer is larger than maxUDP, whatever
// the client offers: it fits into a frame of every network (DNS flag day 2020).
const (
	headerSize = 12
	maxRequest = 4096
	maxUDP     = 1232
	maxTCP     = 65535
)

// An exchange is one question on its way through the server. Exchanges are
// pooled with their buffers.
type exchange struct {
	in  []byte // the request is in in[:n]
	out []byte // the answer is packed here when it fits

	request, reply miekg.Msg
	question       miekg.Question
	name           string // of the question, in lower case
	edns           *miekg.OPT
	limit          int // size of the answer
	pending        key // what the forwarder is to be asked

	answers   []miekg.RR  // memory of reply.Answer
	extras    []miekg.RR  // memory of reply.Extra
	authority [1]miekg.RR // memory of reply.Ns
	opt       miekg.OPT
	options   [1]miekg.EDNS0
}

var exchanges = sync.Pool{New: func() any {
	return &exchange{in: make([]byte, maxRequest), out: make([]byte, maxUDP+1)}
}}

// release gives an exchange back with nothing of the last question in it.
func (x *exchange) release() {
	clear(x.answers[:cap(x.answers)])
	clear(x.extras[:cap(x.extras)])
	clear(x.authority[:])
	if cap(x.answers) > 256 {
		x.answers = nil
	}
	if cap(x.extras) > 256 {
		x.extras = nil
	}
	if cap(x.in) > maxRequest {
		x.in = make([]byte, maxRequest)
	}
	if cap(x.out) > 4*maxUDP {
		x.out = make([]byte, maxUDP+1)
	}
	x.request, x.reply, x.question, x.name, x.edns, x.pending = miekg.Msg{}, miekg.Msg{}, miekg.Question{}, "", nil, key{}
	x.opt, x.options[0] = miekg.OPT{}, nil
	exchanges.Put(x)
}

// verdict says what becomes of a message.
type verdict int

const (
	ignored  verdict = iota // no answer
	answered                // reply is complete
	asked                   // a question to be resolved
)

// accept reads the request and prepares the reply, refusing what is no question
// about a name: it never answers answers, so that two servers cannot keep each
// other busy.
func (x *exchange) accept(in []byte, udp bool) verdict {
	const response = 0x80 // in the third byte
	if len(in) < headerSize || in[2]&response != 0 {
		return ignored
	}
	x.limit = maxTCP
	if udp {
		x.limit = miekg.MinMsgSize
	}
	r := &x.reply
	r.Id = uint16(in[0])<<8 | uint16(in[1])
	r.Response = true
	r.Opcode = int(in[2]>>3) & 0xF
	r.RecursionDesired = in[2]&1 != 0
	if r.Opcode != miekg.OpcodeQuery {
		return x.refuse(miekg.RcodeNotImplemented)
	}
	if in[4] != 0 || in[5] != 1 || x.request.Unpack(in) != nil || len(x.request.Question) != 1 {
		return x.refuse(miekg.RcodeFormatError)
	}
	q := &x.request
	r.RecursionAvailable = true
	r.CheckingDisabled = q.CheckingDisabled
	r.Question = q.Question
	x.question = q.Question[0]
	x.name = lower(x.question.Name)
	r.Answer, r.Ns, r.Extra = x.answers[:0], x.authority[:0], x.extras[:0]

	if x.edns = q.IsEdns0(); x.edns != nil {
		x.opt.Hdr = miekg.RR_Header{Name: ".", Rrtype: miekg.TypeOPT}
		x.opt.SetUDPSize(maxUDP)
		x.opt.SetDo(x.edns.Do())
		if udp {
			x.limit = min(max(miekg.MinMsgSize, int(x.edns.UDPSize())), maxUDP)
		}
		if x.edns.Version() != 0 {
			return x.refuse(miekg.RcodeBadVers)
		}
	}
	switch {
	case x.question.Qclass != miekg.ClassINET,
		x.question.Qtype == miekg.TypeAXFR, x.question.Qtype == miekg.TypeIXFR:
		return x.refuse(miekg.RcodeRefused)
	}
	return asked
}

func (x *exchange) refuse(rcode int) verdict {
	x.reply.Rcode = rcode
	return answered
}

// fail makes the answer a SERVFAIL that says why (RFC 8914).
func (x *exchange) fail(code uint16, why string) {
	x.reply.Answer, x.reply.Ns, x.reply.Extra = x.reply.Answer[:0], x.reply.Ns[:0], x.reply.Extra[:0]
	x.reply.Authoritative = false
	x.reply.Rcode = miekg.RcodeServerFailure
	x.options[0] = &miekg.EDNS0_EDE{InfoCode: code, ExtraText: why}
	x.opt.Option = x.options[:]
}

// pack returns the answer's bytes, shortened to what the client takes. They are
// valid until release.
func (x *exchange) pack() ([]byte, error) {
	r := &x.reply
	extras := len(r.Extra)
	if x.edns != nil {
		r.Extra = append(r.Extra, &x.opt)
	}
	// Addresses of SRV targets are a courtesy: they are left out before anything
	// is called truncated.
	if extras > 0 && r.Len() > x.limit {
		r.Compress = true
		if r.Len() > x.limit {
			r.Extra = r.Extra[extras:]
		}
	}
	r.Truncate(x.limit)
	x.answers, x.extras = r.Answer[:0], r.Extra[:0]
	out, err := r.PackBuffer(x.out)
	if err == nil && len(out) > len(x.out) {
		x.out = out[:cap(out)]
	}
	return out, err
}

// lower returns a name in lower case; itself if it is so already.
func lower(name string) string {
	for i := range len(name) {
		if c := name[i]; 'A' <= c && c <= 'Z' {
			return miekg.CanonicalName(name)
		}
	}
	return name
}

// owned appends records that belong to the name that was asked for, in the
// letters in which it was asked.
func owned(to, list []miekg.RR, name string) []miekg.RR {
	for _, rr := range list {
		if rr.Header().Name != name {
			rr = miekg.Copy(rr)
			rr.Header().Name = name
		}
		to = append(to, rr)
	}
	return to
}

// handle answers one message; nil when there is nothing to answer. It may take
// as long as the upstream resolvers do.
func (s *Server) handle(ctx context.Context, x *exchange, in []byte, udp bool) ([]byte, error) {
	switch x.accept(in, udp) {
	case ignored:
		return nil, nil
	case asked:
		if !s.resolve(x, nil) {
			s.resolveUpstream(ctx, x)
		}
	}
	return x.pack()
}
