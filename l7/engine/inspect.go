package engine

import (
	"bufio"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// A peeked connection gives the bytes that were looked at once more.
type peeked struct {
	net.Conn
	first []byte
}

// Read implements net.Conn.
func (p *peeked) Read(b []byte) (int, error) {
	if len(p.first) > 0 {
		n := copy(b, p.first)
		p.first = p.first[n:]
		return n, nil
	}
	return p.Conn.Read(b)
}

// maxHello bounds the first bytes that are looked at.
const maxHello = 18 << 10

const http2Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

var errNoHello = errors.New("malformed TLS ClientHello")

// inspect reads first bytes until they say what the connection speaks. It returns
// what it has read. A read error ends it: what there is, counts.
func inspect(c net.Conn) (h hello, first []byte) {
	buf := make([]byte, 0, 1024)
	for {
		if len(buf) > 0 {
			if buf[0] == 0x16 {
				h.tls = true
				done, err := parseHello(buf, &h)
				if done || err != nil {
					return h, buf
				}
			} else if done := looksLike(buf, &h); done {
				return h, buf
			}
		}
		if len(buf) == cap(buf) {
			if cap(buf) >= maxHello {
				return h, buf
			}
			buf = append(make([]byte, 0, 2*cap(buf)), buf...)
		}
		n, err := c.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if err != nil {
			if len(buf) > 0 && buf[0] != 0x16 {
				looksLike(buf, &h)
			}
			return h, buf
		}
	}
}

// looksLike recognizes plain-text HTTP; true: no more bytes are needed.
func looksLike(b []byte, h *hello) bool {
	if n := min(len(b), len(http2Preface)); string(b[:n]) == http2Preface[:n] {
		if n < len(http2Preface) {
			return false
		}
		h.protocols = []string{"h2c"}
		return true
	}
	// METHOD SP target SP HTTP/1.x
	for i, c := range b {
		switch {
		case c >= 'A' && c <= 'Z' || c == '-':
			if i > 20 {
				return true
			}
			continue
		case c != ' ' || i == 0:
			return true
		}
		line := string(b[i+1:])
		before, _, ok := strings.Cut(line, "\n")
		if !ok {
			// A long target: the method and a slash shall do.
			if len(line) > 0 && (line[0] == '/' || strings.HasPrefix(line, "http") || line[0] == '*') {
				h.protocols = []string{"http/1.1"}
				return true
			}
			return len(line) > 0
		}
		if strings.Contains(before, " HTTP/1.") {
			h.protocols = []string{"http/1.1"}
		}
		return true
	}
	return false
}

// parseHello reads SNI and ALPN from a ClientHello (RFC 8446 §4.1.2); false: bytes
// are missing.
func parseHello(b []byte, h *hello) (bool, error) {
	// The handshake message may be spread over records.
	var msg []byte
	for {
		if len(b) < 5 {
			return false, nil
		}
		n := int(binary.BigEndian.Uint16(b[3:]))
		if b[0] != 0x16 || n == 0 || n > 16<<10 {
			return false, errNoHello
		}
		if len(b) < 5+n {
			return false, nil
		}
		msg = append(msg, b[5:5+n]...)
		b = b[5+n:]
		if len(msg) >= 4 {
			if msg[0] != 1 {
				return false, errNoHello
			}
			if want := 4 + int(msg[1])<<16 + int(msg[2])<<8 + int(msg[3]); len(msg) >= want {
				msg = msg[4:want]
				break
			} else if want > maxHello {
				return false, errNoHello
			}
		}
	}
	r := reader(msg)
	r.skip(2 + 32)         // version, random
	r.skip(int(r.uint(1))) // session
	r.skip(int(r.uint(2))) // cipher suites
	r.skip(int(r.uint(1))) // compressions
	ext := r.take(int(r.uint(2)))
	for len(ext) > 0 {
		kind := ext.uint(2)
		data := ext.take(int(ext.uint(2)))
		switch kind {
		case 0: // server_name
			list := data.take(int(data.uint(2)))
			for len(list) > 0 {
				t, name := list.uint(1), reader(nil)
				name = list.take(int(list.uint(2)))
				if t == 0 {
					h.serverName = strings.ToLower(string(name))
				}
			}
		case 16: // ALPN
			list := data.take(int(data.uint(2)))
			for len(list) > 0 {
				h.protocols = append(h.protocols, string(list.take(int(list.uint(1)))))
			}
		}
	}
	return true, nil
}

// A reader takes big-endian numbers and pieces; what is not there is empty.
type reader []byte

func (r *reader) take(n int) reader {
	if n > len(*r) {
		n = len(*r)
	}
	out := (*r)[:n]
	*r = (*r)[n:]
	return out
}

func (r *reader) skip(n int) { r.take(n) }

func (r *reader) uint(n int) uint {
	var v uint
	for _, b := range r.take(n) {
		v = v<<8 | uint(b)
	}
	return v
}

// proxyHeader reads a PROXY header, version 1 or 2
// (haproxy.org/download/2.9/doc/proxy-protocol.txt), and returns the addresses in it:
// invalid ones for LOCAL and UNKNOWN.
func proxyHeader(c net.Conn) (from, to netip.AddrPort, rest []byte, err error) {
	b := bufio.NewReaderSize(c, 600)
	const signature = "\r\n\r\n\x00\r\nQUIT\n"
	start, err := b.Peek(len("PROXY "))
	if err != nil {
		return from, to, nil, err
	}
	if string(start) == "PROXY " {
		line, err := b.ReadSlice('\n')
		if err != nil || len(line) > 107 {
			return from, to, nil, errProxyHeader
		}
		f := strings.Fields(string(line))
		if len(f) >= 2 && f[1] == "UNKNOWN" {
			return from, to, remaining(b), nil
		}
		if len(f) != 6 {
			return from, to, nil, errProxyHeader
		}
		if from, err = addrPort(f[2], f[4]); err != nil {
			return from, to, nil, errProxyHeader
		}
		if to, err = addrPort(f[3], f[5]); err != nil {
			return from, to, nil, errProxyHeader
		}
		return from, to, remaining(b), nil
	}
	head, err := b.Peek(16)
	if err != nil || string(head[:12]) != signature || head[12]>>4 != 2 {
		return from, to, nil, errProxyHeader
	}
	command, family, n := head[12]&15, head[13], int(binary.BigEndian.Uint16(head[14:]))
	if n > 500 {
		return from, to, nil, errProxyHeader
	}
	all, err := b.Peek(16 + n)
	if err != nil {
		return from, to, nil, errProxyHeader
	}
	r := reader(append([]byte(nil), all[16:]...))
	if _, err := b.Discard(16 + n); err != nil {
		return from, to, nil, err
	}
	if command == 1 && (family == 0x11 || family == 0x21) {
		size := 4
		if family == 0x21 {
			size = 16
		}
		src, _ := netip.AddrFromSlice(r.take(size))
		dst, _ := netip.AddrFromSlice(r.take(size))
		from = netip.AddrPortFrom(src, uint16(r.uint(2)))
		to = netip.AddrPortFrom(dst, uint16(r.uint(2)))
	}
	return from, to, remaining(b), nil
}

var errProxyHeader = errors.New("malformed PROXY header")

func remaining(b *bufio.Reader) []byte {
	rest, _ := b.Peek(b.Buffered())
	return append([]byte(nil), rest...)
}

func addrPort(host, port string) (netip.AddrPort, error) {
	a, err := netip.ParseAddr(host)
	if err != nil {
		return netip.AddrPort{}, err
	}
	p, err := strconv.ParseUint(port, 10, 16)
	return netip.AddrPortFrom(a, uint16(p)), err
}
