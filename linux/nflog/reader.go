package nflog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// ErrUnsupported is returned when the kernel has no nfnetlink_log.
var ErrUnsupported = errors.New("the kernel has no nfnetlink_log")

// ErrInUse is returned when somebody listens to the group already.
var ErrInUse = errors.New("the group has a listener already")

// From linux/netfilter/nfnetlink_log.h.
const (
	msgPacket = unix.NFNL_SUBSYS_ULOG << 8
	msgConfig = unix.NFNL_SUBSYS_ULOG<<8 | 1

	attrTimestamp = 3
	attrPayload   = 9

	cfgCommand = 1
	cfgMode    = 2
	cfgThresh  = 5

	commandBind = 1
	copyPacket  = 2
)

// A Packet is what a rule logged.
type Packet struct {
	Payload []byte // from the network header on; valid during the call only
	At      time.Time
}

// A Reader listens to one group.
type Reader struct{ conn *netlink.Conn }

// Open listens to a group in the network namespace of the calling thread; of
// each packet, length bytes are kept, and each is delivered at once.
func Open(group uint16, length uint32) (*Reader, error) {
	c, err := netlink.Dial(unix.NETLINK_NETFILTER, nil)
	if err != nil {
		return nil, fmt.Errorf("netlink socket for NFLOG: %w", err)
	}
	mode := binary.BigEndian.AppendUint32(nil, length)
	attrs, err := netlink.MarshalAttributes([]netlink.Attribute{
		{Type: cfgCommand, Data: []byte{commandBind}},
		{Type: cfgMode, Data: append(mode, copyPacket, 0)},
		{Type: cfgThresh, Data: binary.BigEndian.AppendUint32(nil, 1)},
	})
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	body := append([]byte{unix.AF_UNSPEC, unix.NFNETLINK_V0}, binary.BigEndian.AppendUint16(nil, group)...)
	_, err = c.Execute(netlink.Message{
		Header: netlink.Header{Type: msgConfig, Flags: netlink.Request | netlink.Acknowledge},
		Data:   append(body, attrs...),
	})
	if err == nil {
		return &Reader{conn: c}, nil
	}
	_ = c.Close()
	switch {
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENOENT):
		return nil, fmt.Errorf("NFLOG group %d: %w", group, ErrUnsupported)
	case errors.Is(err, unix.EBUSY):
		return nil, fmt.Errorf("NFLOG group %d: %w", group, ErrInUse)
	default:
		return nil, fmt.Errorf("NFLOG group %d: %w", group, err)
	}
}

// Close ends the listening; Read returns.
func (r *Reader) Close() error { return r.conn.Close() }

// Read calls f for each packet until the reader is closed.
func (r *Reader) Read(f func(Packet)) error {
	for {
		msgs, err := r.conn.Receive()
		switch {
		case errors.Is(err, unix.ENOBUFS):
			continue // some packets were lost
		case err != nil:
			return fmt.Errorf("read NFLOG: %w", err)
		}
		for _, m := range msgs {
			if m.Header.Type == msgPacket && len(m.Data) > 4 {
				if p, ok := parse(m.Data[4:]); ok {
					f(p)
				}
			}
		}
	}
}

func parse(data []byte) (p Packet, ok bool) {
	attrs, err := netlink.UnmarshalAttributes(data)
	if err != nil {
		return p, false
	}
	p.At = time.Now()
	for _, a := range attrs {
		switch {
		case a.Type&^uint16(unix.NLA_F_NET_BYTEORDER) == attrTimestamp && len(a.Data) == 16:
			p.At = time.Unix(int64(binary.BigEndian.Uint64(a.Data)), int64(binary.BigEndian.Uint64(a.Data[8:]))*1000)
		case a.Type == attrPayload:
			p.Payload = a.Data
		}
	}
	return p, p.Payload != nil
}
