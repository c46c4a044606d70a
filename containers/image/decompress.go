package image

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// decompress undoes gzip or zstd, whichever the content begins with; other content is passed on.
func decompress(r io.Reader) (io.ReadCloser, error) {
	br := bufio.NewReaderSize(r, 64<<10)
	magic, err := br.Peek(4)
	if err != nil && err != io.EOF {
		return nil, err
	}
	switch {
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		return gzip.NewReader(br)
	case bytes.HasPrefix(magic, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		z, err := zstd.NewReader(br, zstd.WithDecoderConcurrency(2), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(128<<20))
		if err != nil {
			return nil, err
		}
		return z.IOReadCloser(), nil
	}
	return io.NopCloser(br), nil
}

const (
	aheadSize  = 256 << 10
	aheadCount = 4
)

// ahead reads and hashes in a goroutine, so that decompressing and writing
// files go on at the same time. Close ends the goroutine and waits for it.
type ahead struct {
	full chan chunk
	free chan []byte
	stop chan struct{}
	gone chan struct{}
	cur  chunk
	off  int
	hash hash.Hash // of all that was read; may be looked at after io.EOF
}

type chunk struct {
	data []byte
	err  error
}

func readAhead(r io.Reader) *ahead {
	a := &ahead{
		full: make(chan chunk, aheadCount), free: make(chan []byte, aheadCount),
		stop: make(chan struct{}), gone: make(chan struct{}), hash: sha256.New(),
	}
	for range aheadCount {
		a.free <- nil // made when needed: many layers are small
	}
	go a.run(r)
	return a
}

func (a *ahead) run(r io.Reader) {
	defer close(a.gone)
	for {
		var buf []byte
		select {
		case buf = <-a.free:
		case <-a.stop:
			return
		}
		if buf == nil {
			buf = make([]byte, aheadSize)
		}
		var n int
		var err error
		for n < len(buf) && err == nil {
			var m int
			m, err = r.Read(buf[n:])
			n += m
		}
		a.hash.Write(buf[:n])
		select {
		case a.full <- chunk{buf[:n], err}:
		case <-a.stop:
			return
		}
		if err != nil {
			return
		}
	}
}

func (a *ahead) Read(p []byte) (int, error) {
	for a.off == len(a.cur.data) {
		if a.cur.err != nil {
			return 0, a.cur.err
		}
		if a.cur.data != nil {
			a.free <- a.cur.data[:cap(a.cur.data)]
		}
		a.cur, a.off = <-a.full, 0
	}
	n := copy(p, a.cur.data[a.off:])
	a.off += n
	return n, nil
}

// digest is the digest of everything, once Read has returned io.EOF.
func (a *ahead) digest() string { return "sha256:" + hex.EncodeToString(a.hash.Sum(nil)) }

func (a *ahead) Close() error {
	close(a.stop)
	<-a.gone
	return nil
}
