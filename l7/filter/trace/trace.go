package trace

import (
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/periplus/periplus/l7"
)

// Filter identifies requests.
type Filter struct {
	// NewRequestID replaces an X-Request-ID that came with the request: at the edge of
	// a mesh. Otherwise it is kept.
	NewRequestID bool
	// ResponseID also sends X-Request-ID with the response.
	ResponseID bool
	// Context makes and continues trace contexts; without it there is only X-Request-ID.
	Context bool
	// Sampling is the part of the new traces, in millionths, that are exported.
	Sampling uint32
	// Export gets the spans of sampled requests; nil: none. It must not keep x.
	Export func(s Span, x *l7.Exchange)
}

var (
	_ l7.ResponseFilter = (*Filter)(nil)
	_ l7.EndFilter      = (*Filter)(nil)
)

// A Span is one hop of a trace.
type Span struct {
	Trace   [16]byte
	Span    [8]byte
	Parent  [8]byte // zero: a root
	Start   time.Time
	End     time.Time
	Sampled bool
}

type key struct{}

// Of returns the span of a request; nil: it has none.
func Of(x *l7.Exchange) *Span {
	s, _ := x.Value(key{}).(*Span)
	return s
}

// Request implements l7.Filter.
func (f *Filter) Request(x *l7.Exchange) *l7.Reply {
	h := &x.Request.Header
	if f.NewRequestID || !h.Has("x-request-id") {
		h.Set("X-Request-ID", NewID())
	}
	if !f.Context {
		return nil
	}
	s := &Span{Start: x.Start}
	if !parseW3C(h.Get("traceparent"), s) && !parseB3(*h, s) {
		random(s.Trace[:])
		s.Sampled = f.Sampling > 0 && rand.Uint32N(1_000_000) < f.Sampling
	}
	random(s.Span[:])
	x.Set(key{}, s)
	write(h, s)
	return nil
}

// Response implements l7.ResponseFilter.
func (f *Filter) Response(x *l7.Exchange) {
	if f.ResponseID {
		x.Response.Header.Set("X-Request-ID", x.Request.Header.Get("x-request-id"))
	}
}

// End implements l7.EndFilter.
func (f *Filter) End(x *l7.Exchange) {
	if s := Of(x); f.Export != nil && s != nil && s.Sampled {
		s.End = s.Start.Add(x.Duration)
		f.Export(*s, x)
	}
}

// NewID returns a random UUID (RFC 9562, version 4).
func NewID() string {
	var b [16]byte
	random(b[:])
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	var out [36]byte
	hex.Encode(out[0:8], b[0:4])
	hex.Encode(out[9:13], b[4:6])
	hex.Encode(out[14:18], b[6:8])
	hex.Encode(out[19:23], b[8:10])
	hex.Encode(out[24:], b[10:])
	out[8], out[13], out[18], out[23] = '-', '-', '-', '-'
	return string(out[:])
}

func random(b []byte) {
	for i := 0; i < len(b); i += 8 {
		binary.LittleEndian.PutUint64(b[i:], rand.Uint64())
	}
}

// parseW3C reads version-trace-parent-flags.
func parseW3C(v string, s *Span) bool {
	p := strings.Split(v, "-")
	if len(p) < 4 || len(p[0]) != 2 || p[0] == "ff" || len(p[1]) != 32 || len(p[2]) != 16 || len(p[3]) != 2 {
		return false
	}
	var flags [1]byte
	if !decode(s.Trace[:], p[1]) || !decode(s.Parent[:], p[2]) || !decode(flags[:], p[3]) {
		return false
	}
	s.Sampled = flags[0]&1 == 1
	return s.Trace != [16]byte{} && s.Parent != [8]byte{}
}

// parseB3 reads the single header or the several ones.
func parseB3(h l7.Header, s *Span) bool {
	trace, span, sampled := h.Get("x-b3-traceid"), h.Get("x-b3-spanid"), h.Get("x-b3-sampled")
	if single := h.Get("b3"); single != "" {
		p := append(strings.Split(single, "-"), "", "", "")
		trace, span, sampled = p[0], p[1], p[2]
	}
	if len(trace) == 16 {
		trace = strings.Repeat("0", 16) + trace
	}
	if len(trace) != 32 || len(span) != 16 || !decode(s.Trace[:], trace) || !decode(s.Parent[:], span) {
		return false
	}
	s.Sampled = sampled == "1" || sampled == "d" || sampled == "true"
	return true
}

func decode(to []byte, s string) bool {
	_, err := hex.Decode(to, []byte(s))
	return err == nil
}

// write sends the context on, in both notations.
func write(h *l7.Header, s *Span) {
	trace, span := hex.EncodeToString(s.Trace[:]), hex.EncodeToString(s.Span[:])
	flags, sampled := "00", "0"
	if s.Sampled {
		flags, sampled = "01", "1"
	}
	h.Set("traceparent", "00-"+trace+"-"+span+"-"+flags)
	h.Set("x-b3-traceid", trace)
	h.Set("x-b3-spanid", span)
	h.Set("x-b3-sampled", sampled)
	h.Del("b3")
	if s.Parent != [8]byte{} {
		h.Set("x-b3-parentspanid", hex.EncodeToString(s.Parent[:]))
	} else {
		h.Del("x-b3-parentspanid")
	}
}
