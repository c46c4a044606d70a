package http1

import (
	"bytes"
	"io"

	"github.com/periplus/periplus/l7"
)

// maxChunkLine bounds the line of a chunk with its extensions; maxTrailer all trailers.
const (
	maxChunkLine = 4096
	maxTrailer   = 16 << 10
)

// A Body reads what follows a head, to its end and not further.
type Body struct {
	b       *Reader
	left    int64 // of the body or the chunk
	kind    bodyKind
	state   chunkState
	trailer *l7.Header
	err     error // sticky; io.EOF at the end
	// Before is called before the first byte is read; for 100 Continue.
	Before func() error
}

type bodyKind uint8

const (
	bodyLength bodyKind = iota
	bodyChunked
	bodyUntilClose
)

type chunkState uint8

const (
	chunkSize  chunkState = iota // a chunk's line comes next
	chunkData                    // left bytes, then CRLF
	chunkAfter                   // the CRLF after the data
)

// Reset prepares the body of a message whose head has just been read. trailer gets
// the fields after a chunked body.
func (d *Body) Reset(b *Reader, info *Info, length int64, trailer *l7.Header) {
	*d = Body{b: b, trailer: trailer}
	switch {
	case info.Chunked:
		d.kind = bodyChunked
	case info.UntilClose:
		d.kind = bodyUntilClose
	default:
		d.left = max64(length, 0)
		if d.left == 0 {
			d.err = io.EOF
		}
	}
}

// Done reports whether the body has been read to its end.
func (d *Body) Done() bool { return d.err == io.EOF } //nolint:errorlint // set by this type

// Left returns how many bytes of a body of known length are to come; -1: unknown.
func (d *Body) Left() int64 {
	if d.kind != bodyLength {
		return -1
	}
	return d.left
}

// Took tells that n bytes of a body of known length were taken from the connection
// directly.
func (d *Body) Took(n int64) {
	if d.left -= n; d.left == 0 {
		d.err = io.EOF
	}
}

// Ready returns how many bytes can be read without waiting; 1 if all that is there is
// the end. For joining a body's first piece with the head.
func (d *Body) Ready() int {
	if d.err != nil {
		return 0
	}
	buffered := d.b.Buffered()
	switch d.kind {
	case bodyLength:
		return int(min(int64(len(buffered)), d.left))
	case bodyChunked:
		return d.readyChunks(buffered)
	default:
		return len(buffered)
	}
}

// readyChunks looks whether a whole line of size and something after it are there.
func (d *Body) readyChunks(b []byte) int {
	switch {
	case d.state == chunkData:
		return int(min(int64(len(b)), d.left))
	case d.state == chunkAfter && len(b) >= 2:
		b = b[2:]
	case d.state == chunkAfter:
		return 0
	}
	i := bytes.IndexByte(b, '\n')
	if i < 1 {
		return 0
	}
	rest := b[i+1:]
	if b[0] == '0' {
		if len(rest) >= 2 && rest[0] == '\r' || bytes.Contains(rest, crlfcrlf) {
			return 1
		}
		return 0
	}
	return len(rest)
}

// Read implements io.Reader.
func (d *Body) Read(p []byte) (int, error) {
	if d.err != nil {
		return 0, d.err
	}
	if d.Before != nil {
		before := d.Before
		d.Before = nil
		if err := before(); err != nil {
			return 0, err
		}
	}
	if len(p) == 0 {
		return 0, nil
	}
	var n int
	var err error
	switch d.kind {
	case bodyLength:
		n, err = d.readLength(p)
	case bodyChunked:
		n, err = d.readChunked(p)
	case bodyUntilClose:
		n, err = d.b.Read(p)
	}
	if err != nil && !isTimeout(err) {
		d.err = err
	}
	return n, err
}

func (d *Body) readLength(p []byte) (int, error) {
	if int64(len(p)) > d.left {
		p = p[:d.left]
	}
	n, err := d.b.Read(p)
	d.left -= int64(n)
	if d.left == 0 {
		d.err = io.EOF
		return n, nil
	}
	return n, unexpected(err)
}

func (d *Body) readChunked(p []byte) (int, error) {
	for {
		switch d.state {
		case chunkSize:
			line, err := d.b.line(maxChunkLine)
			if err != nil {
				return 0, err
			}
			size, err := chunkLength(line)
			if err != nil {
				return 0, err
			}
			if size == 0 {
				if err := d.readTrailer(); err != nil {
					return 0, err
				}
				return 0, io.EOF
			}
			d.left, d.state = size, chunkData
		case chunkData:
			if int64(len(p)) > d.left {
				p = p[:d.left]
			}
			n, err := d.b.Read(p)
			if d.left -= int64(n); d.left == 0 {
				d.state = chunkAfter
			}
			return n, unexpected(err)
		case chunkAfter:
			if err := d.endOfChunk(); err != nil {
				return 0, err
			}
		}
	}
}

func (d *Body) endOfChunk() error {
	line, err := d.b.line(2)
	if err != nil {
		return err
	}
	if len(line) != 0 {
		return errChunk
	}
	d.state = chunkSize
	return nil
}

// chunkLength reads the hexadecimal size; extensions are skipped.
func chunkLength(line []byte) (int64, error) {
	var n int64
	digits := 0
	for i, c := range line {
		var v byte
		switch {
		case c >= '0' && c <= '9':
			v = c - '0'
		case c >= 'a' && c <= 'f':
			v = c - 'a' + 10
		case c >= 'A' && c <= 'F':
			v = c - 'A' + 10
		case digits > 0 && (c == ';' || c == ' ' || c == '\t'):
			return n, validExtension(line[i:])
		default:
			return 0, errChunk
		}
		if digits++; digits > 15 {
			return 0, errChunk
		}
		n = n<<4 | int64(v)
	}
	if digits == 0 {
		return 0, errChunk
	}
	return n, nil
}

// validExtension wants white space, then nothing or a semicolon.
func validExtension(b []byte) error {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t') {
		b = b[1:]
	}
	if len(b) > 0 && b[0] != ';' {
		return errChunk
	}
	for _, c := range b {
		if c < 0x20 && c != '\t' || c == 0x7f {
			return errChunk
		}
	}
	return nil
}

func (d *Body) readTrailer() error {
	var lines []byte
	for {
		line, err := d.b.line(maxTrailer)
		if err != nil {
			return err
		}
		if len(line) == 0 {
			break
		}
		if len(lines)+len(line) > maxTrailer {
			return ErrTooLarge
		}
		lines = append(append(lines, line...), "\r\n"...)
	}
	if len(lines) == 0 || d.trailer == nil {
		return nil
	}
	// Fields of framing are dropped with the connection's own.
	var f framing
	h, err := parseFields(string(append(lines, "\r\n"...)), nil, &f)
	if err != nil {
		return err
	}
	*d.trailer = h
	return nil
}

func unexpected(err error) error {
	if err == io.EOF { //nolint:errorlint // an io.Reader's EOF is not wrapped
		return io.ErrUnexpectedEOF
	}
	return err
}
