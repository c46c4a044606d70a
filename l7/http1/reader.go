package http1

import (
	"bytes"
	"errors"
	"io"
)

// BufferSize is the size of a Reader's first buffer.
const BufferSize = 4096

// ErrTooLarge is returned when a head or a line is longer than allowed.
var ErrTooLarge = errors.New("message head too large")

// A Reader buffers what comes from a connection.
type Reader struct {
	src  io.Reader
	buf  []byte
	r, w int
	eof  error // of src, after what is buffered
}

// NewReader reads from src. buf may be nil.
func NewReader(src io.Reader, buf []byte) *Reader {
	if buf == nil {
		buf = make([]byte, BufferSize)
	}
	return &Reader{src: src, buf: buf}
}

// Prepend makes data come before all else; for bytes that were looked at before.
func (b *Reader) Prepend(data []byte) {
	rest := append(append([]byte(nil), data...), b.buf[b.r:b.w]...)
	if len(rest) > len(b.buf) {
		b.buf = make([]byte, len(rest)+BufferSize)
	}
	b.r, b.w = 0, copy(b.buf, rest)
}

// Buffered returns what is there without reading more; valid until the next call.
func (b *Reader) Buffered() []byte { return b.buf[b.r:b.w] }

// Discard skips n buffered bytes.
func (b *Reader) Discard(n int) {
	b.r += n
	if b.r == b.w {
		b.r, b.w = 0, 0
	}
}

// Fill reads once from the connection. The buffer grows up to max bytes; when it is
// full, ErrTooLarge.
func (b *Reader) Fill(max int) error {
	if b.eof != nil {
		return b.eof
	}
	if b.r > 0 && (b.r == b.w || b.w == len(b.buf)) {
		b.w = copy(b.buf, b.buf[b.r:b.w])
		b.r = 0
	}
	if b.w == len(b.buf) {
		if len(b.buf) >= max {
			return ErrTooLarge
		}
		grown := make([]byte, min(2*len(b.buf), max))
		b.w = copy(grown, b.buf[:b.w])
		b.buf = grown
	}
	n, err := b.src.Read(b.buf[b.w:])
	b.w += n
	if n > 0 {
		if err != nil && !isTimeout(err) {
			b.eof = err
		}
		return nil
	}
	if err == nil {
		err = io.ErrNoProgress
	}
	return err
}

// Read implements io.Reader: what is buffered first, then the connection itself.
func (b *Reader) Read(p []byte) (int, error) {
	if b.r < b.w {
		n := copy(p, b.buf[b.r:b.w])
		b.Discard(n)
		return n, nil
	}
	if b.eof != nil {
		return 0, b.eof
	}
	if len(p) >= len(b.buf) {
		return b.src.Read(p)
	}
	if err := b.Fill(len(b.buf)); err != nil {
		return 0, err
	}
	n := copy(p, b.buf[b.r:b.w])
	b.Discard(n)
	return n, nil
}

// head returns the bytes up to and including the empty line, as a string, and
// consumes them. io.EOF means that nothing came at all.
func (b *Reader) head(max int, started func()) (string, error) {
	searched := 0
	for {
		data := b.buf[b.r:b.w]
		if len(data) > 0 {
			if data[0] == '\r' {
				// Empty lines before a message (RFC 9112 §2.2); half of one waits.
				skipped := skipEmptyLines(data)
				b.Discard(skipped)
				data, searched = data[skipped:], 0
			}
			from := 0
			if searched > 3 {
				from = searched - 3
			}
			if i := bytes.Index(data[from:], crlfcrlf); i >= 0 {
				n := from + i + 4
				if n > max {
					return "", ErrTooLarge
				}
				s := string(data[:n])
				b.Discard(n)
				return s, nil
			}
			// A lone LF that ends a line would otherwise be waited on for ever.
			if bytes.Contains(data[from:], lflf) {
				return "", errBareLF
			}
			if len(data) >= max {
				return "", ErrTooLarge
			}
			if searched == 0 && len(data) > 0 && started != nil {
				started()
				started = nil
			}
			searched = len(data)
		}
		if err := b.Fill(max + 4); err != nil {
			if err == io.EOF && searched > 0 { //nolint:errorlint // an io.Reader's EOF is not wrapped
				return "", io.ErrUnexpectedEOF
			}
			return "", err
		}
	}
}

// line returns a line without its CRLF and consumes it.
func (b *Reader) line(max int) ([]byte, error) {
	searched := 0
	for {
		data := b.buf[b.r:b.w]
		if i := bytes.IndexByte(data[searched:], '\n'); i >= 0 {
			n := searched + i
			if n == 0 || data[n-1] != '\r' {
				return nil, errBareLF
			}
			line := data[:n-1]
			if bytes.IndexByte(line, '\r') >= 0 {
				return nil, errBareCR
			}
			// The bytes stay where they are until the next Fill.
			b.r += n + 1
			return line, nil
		}
		searched = len(data)
		if searched >= max {
			return nil, ErrTooLarge
		}
		if err := b.Fill(max + 2); err != nil {
			if err == io.EOF { //nolint:errorlint // an io.Reader's EOF is not wrapped
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
	}
}

var (
	crlfcrlf = []byte("\r\n\r\n")
	lflf     = []byte("\n\n")
)

// skipEmptyLines returns how many bytes of CRLF come before a request (RFC 9112 §2.2).
func skipEmptyLines(data []byte) int {
	n := 0
	for n+1 < len(data) && data[n] == '\r' && data[n+1] == '\n' && n < 8 {
		n += 2
	}
	return n
}

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}
