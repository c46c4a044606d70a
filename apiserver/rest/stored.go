package rest

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"io"
	"net/http"
	"strconv"
	"sync"

	"github.com/periplus/periplus/apiserver/cacher"
)

// A stored message is an object in the protobuf form that it has in the store, and on
// its way to clients under its revision. Nothing is decoded, and nothing copied but
// into the answer: protobuf merges repeated embedded messages, so that metadata
// (field 1) { resourceVersion (field 6) } is added to what is there.
//
//	"k8s\0" | Unknown { typeMeta (1), raw (2) = object … + 0A len 32 len "rev" , … }
type storedMessage struct {
	head []byte // the prefix and the type
	raw  []byte // the object's own message
	tail []byte // what follows it in the envelope
	rev  [24]byte
	revN int
}

// messageOf takes an envelope apart.
func messageOf(stored []byte, rev int64) (m storedMessage, ok bool) {
	rest, ok := bytes.CutPrefix(stored, protobufPrefix)
	if !ok {
		return m, false
	}
	if rest, ok = skipField(rest, 1<<3|2); !ok {
		return m, false
	}
	m.head = stored[:len(stored)-len(rest)]
	after, ok := skipField(rest, 2<<3|2)
	if !ok {
		return m, false
	}
	_, n := binary.Uvarint(rest[1:])
	m.raw, m.tail = rest[1+n:len(rest)-len(after)], after
	digits := strconv.AppendInt(m.rev[4:4], rev, 10)
	m.rev[0], m.rev[1], m.rev[2], m.rev[3] = 0x0A, byte(len(digits)+2), 0x32, byte(len(digits))
	m.revN = 4 + len(digits)
	return m, true
}

// skipField returns what follows a field of bytes that must come first.
func skipField(b []byte, tag byte) ([]byte, bool) {
	if len(b) == 0 || b[0] != tag {
		return nil, false
	}
	size, n := binary.Uvarint(b[1:])
	if n <= 0 || size > uint64(len(b)-1-n) {
		return nil, false
	}
	return b[1+n+int(size):], true
}

// rawSize is the size of the object's own message, with its revision.
func (m *storedMessage) rawSize() int { return len(m.raw) + m.revN }

func (m *storedMessage) appendRaw(out []byte) []byte {
	return append(append(out, m.raw...), m.rev[:m.revN]...)
}

// size is the size of the envelope.
func (m *storedMessage) size() int {
	n := m.rawSize()
	return len(m.head) + 1 + uvarintLen(n) + n + len(m.tail)
}

func (m *storedMessage) append(out []byte) []byte {
	out = append(append(out, m.head...), 2<<3|2)
	out = m.appendRaw(appendUvarint(out, m.rawSize()))
	return append(out, m.tail...)
}

// message returns an object's message if it can be sent as it is stored.
func (e *endpoint) message(obj *cacher.Object) (storedMessage, bool) {
	if e.also != nil || obj.Rev == 0 || !e.objects.codec.isPlain(obj.Stored()) {
		return storedMessage{}, false
	}
	return messageOf(obj.Stored(), obj.Rev)
}

// chunk is how much of an answer is written at once.
const chunk = 128 << 10

// buffers are kept for answers.
var buffers = sync.Pool{New: func() any {
	b := make([]byte, 0, 4<<10)
	return &b
}}

func getBuffer() *[]byte { return buffers.Get().(*[]byte) }

func putBuffer(b *[]byte) {
	if cap(*b) <= 2*chunk {
		*b = (*b)[:0]
		buffers.Put(b)
	}
}

// A stream is the body of an answer that is written in large pieces. Who has appended
// to buf calls room, and end when all is there.
type stream struct {
	buf    []byte
	pooled *[]byte
	w      io.Writer
	zip    *gzip.Writer // nil: it is not compressed
	head   bool         // nothing is written
	err    error
}

// beginStream sends the header of an answer of about estimate bytes; length is -1 if it
// is not known.
func beginStream(w http.ResponseWriter, r *http.Request, f format, estimate, length int) *stream {
	addWarnings(w, r)
	h := w.Header()
	h.Set("Content-Type", f.media)
	h.Set("Cache-Control", "no-cache, private")
	s := &stream{pooled: getBuffer(), w: w, head: r.Method == http.MethodHead}
	s.buf = *s.pooled
	switch {
	case compresses(r, estimate):
		h.Set("Content-Encoding", "gzip")
		h.Add("Vary", "Accept-Encoding")
		s.zip = gzipWriters.Get().(*gzip.Writer)
		s.zip.Reset(w)
		s.w = s.zip
	case length >= 0:
		h.Set("Content-Length", strconv.Itoa(length))
	}
	w.WriteHeader(http.StatusOK)
	return s
}

// room writes what there is once it is enough. It reports whether anybody still reads.
func (s *stream) room() bool {
	if len(s.buf) >= chunk {
		s.flush()
	}
	return s.err == nil && !s.head
}

func (s *stream) flush() {
	if s.err == nil && !s.head {
		_, s.err = s.w.Write(s.buf)
	}
	s.buf = s.buf[:0]
}

// end writes the rest.
func (s *stream) end() {
	s.flush()
	if s.zip != nil {
		if s.err == nil && !s.head {
			_ = s.zip.Close() // an error means that the client has gone
		}
		s.zip.Reset(nil)
		gzipWriters.Put(s.zip)
	}
	*s.pooled = s.buf
	putBuffer(s.pooled)
}
