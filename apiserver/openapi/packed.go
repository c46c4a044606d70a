package openapi

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"hash/crc32"
	"sync"
)

// packed is a piece of a document, deflated so that pieces one after another are a
// stream (RFC 1951 §3.2.3: blocks that end at a byte, none of them the last one). A
// document of pieces is compressed piece by piece, when these change.
type packed struct {
	data []byte
	sum  uint32 // CRC-32 of the text
	size int64  // of the text
}

// flateWriters are kept while many pieces are packed: each takes a megabyte.
var flateWriters = sync.Pool{New: func() any {
	w, err := flate.NewWriter(nil, flate.DefaultCompression)
	if err != nil {
		panic(err) // the level is a constant
	}
	return w
}}

func pack(text []byte) packed {
	if len(text) == 0 {
		return packed{}
	}
	var out bytes.Buffer
	w := flateWriters.Get().(*flate.Writer)
	defer flateWriters.Put(w)
	w.Reset(&out)
	_, _ = w.Write(text) // a buffer takes everything
	_ = w.Flush()
	return packed{data: bytes.Clone(out.Bytes()), sum: crc32.ChecksumIEEE(text), size: int64(len(text))}
}

// text unpacks a piece.
func (p packed) text() ([]byte, error) {
	out := make([]byte, p.size)
	if p.size == 0 {
		return out, nil
	}
	r := flate.NewReader(bytes.NewReader(p.data))
	for n := 0; n < len(out); {
		m, err := r.Read(out[n:])
		if n += m; err != nil && n < len(out) {
			return nil, err
		}
	}
	return out, nil
}

// A zipper joins pieces to one member of a gzip file (RFC 1952).
type zipper struct {
	out  []byte
	sum  uint32
	size int64
}

func newZipper() *zipper {
	return &zipper{out: []byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff}}
}

func (z *zipper) add(p packed) {
	z.out = append(z.out, p.data...)
	z.sum = shifted(z.sum, p.size) ^ p.sum
	z.size += p.size
}

// text adds short text as it is, in stored blocks.
func (z *zipper) text(b []byte) {
	for len(b) > 0 {
		n := min(len(b), 1<<16-1)
		z.out = append(z.out, 0)
		z.out = binary.LittleEndian.AppendUint16(z.out, uint16(n))
		z.out = binary.LittleEndian.AppendUint16(z.out, ^uint16(n))
		z.out = append(z.out, b[:n]...)
		z.sum = crc32.Update(z.sum, crc32.IEEETable, b[:n])
		z.size += int64(n)
		b = b[n:]
	}
}

// done ends the member and returns it.
func (z *zipper) done() []byte {
	z.out = append(z.out, 1, 0, 0, 0xff, 0xff) // an empty last block
	z.out = binary.LittleEndian.AppendUint32(z.out, z.sum)
	return binary.LittleEndian.AppendUint32(z.out, uint32(z.size))
}

var zeros [1 << 14]byte

// shifted is what a sum becomes by n further bytes, before these themselves are added:
// sums are linear over the bits, so that the sum of a text and another that follows is
// the first, shifted, xor the second.
func shifted(sum uint32, n int64) uint32 {
	none := uint32(0)
	for n > 0 {
		m := min(n, int64(len(zeros)))
		sum = crc32.Update(sum, crc32.IEEETable, zeros[:m])
		none = crc32.Update(none, crc32.IEEETable, zeros[:m])
		n -= m
	}
	return sum ^ none
}
