package nft

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// appendAttr appends one netlink attribute, padded to four bytes.
func appendAttr(b []byte, typ uint16, data []byte) []byte {
	b = binary.NativeEndian.AppendUint16(b, uint16(unix.NLA_HDRLEN+len(data)))
	b = binary.NativeEndian.AppendUint16(b, typ)
	b = append(b, data...)
	return pad(b)
}

// appendString appends a string attribute with its terminating zero.
func appendString(b []byte, typ uint16, s string) []byte {
	b = binary.NativeEndian.AppendUint16(b, uint16(unix.NLA_HDRLEN+len(s)+1))
	b = binary.NativeEndian.AppendUint16(b, typ)
	b = append(b, s...)
	return pad(append(b, 0))
}

// appendU32 appends a 32-bit attribute in network order, as nf_tables wants all its numbers.
func appendU32(b []byte, typ uint16, v uint32) []byte {
	b = binary.NativeEndian.AppendUint16(b, unix.NLA_HDRLEN+4)
	b = binary.NativeEndian.AppendUint16(b, typ)
	return binary.BigEndian.AppendUint32(b, v)
}

func appendU64(b []byte, typ uint16, v uint64) []byte {
	b = binary.NativeEndian.AppendUint16(b, unix.NLA_HDRLEN+8)
	b = binary.NativeEndian.AppendUint16(b, typ)
	return binary.BigEndian.AppendUint64(b, v)
}

func appendU16(b []byte, typ uint16, v uint16) []byte {
	var d [2]byte
	binary.BigEndian.PutUint16(d[:], v)
	return appendAttr(b, typ, d[:])
}

// begin opens a nested attribute; end, given begin's offset, closes it.
func begin(b []byte, typ uint16) ([]byte, int) {
	at := len(b)
	b = binary.NativeEndian.AppendUint16(b, 0)
	b = binary.NativeEndian.AppendUint16(b, typ|unix.NLA_F_NESTED)
	return b, at
}

func end(b []byte, at int) []byte {
	binary.NativeEndian.PutUint16(b[at:], uint16(len(b)-at))
	return b
}

func pad(b []byte) []byte {
	for len(b)%unix.NLA_ALIGNTO != 0 {
		b = append(b, 0)
	}
	return b
}

// walk calls f for each attribute in b, without its flags. Truncated input ends the walk.
func walk(b []byte, f func(typ uint16, data []byte)) {
	for len(b) >= unix.NLA_HDRLEN {
		n := int(binary.NativeEndian.Uint16(b))
		if n < unix.NLA_HDRLEN || n > len(b) {
			return
		}
		f(binary.NativeEndian.Uint16(b[2:])&^(unix.NLA_F_NESTED|unix.NLA_F_NET_BYTEORDER), b[unix.NLA_HDRLEN:n])
		n = (n + unix.NLA_ALIGNTO - 1) &^ (unix.NLA_ALIGNTO - 1)
		if n > len(b) {
			return
		}
		b = b[n:]
	}
}

// find returns the first attribute of that type, or nil.
func find(b []byte, typ uint16) (data []byte) {
	walk(b, func(t uint16, d []byte) {
		if t == typ && data == nil {
			data = d
		}
	})
	return data
}

func cstring(b []byte) string {
	for i, c := range b {
		if c == 0 {
			return string(b[:i])
		}
	}
	return string(b)
}
