package nft

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sys/unix"
)

// ErrNotFound is returned when the table, or something in it that the
// transaction refers to, is not there.
var ErrNotFound = errors.New("not in the kernel")

// A Conn is a connection to nf_tables in one network namespace. It may be used
// from several goroutines.
type Conn struct {
	mu  sync.Mutex // guards what follows, and one exchange at a time
	fd  int
	seq uint32
	rcv []byte
}

// Open connects to the network namespace of the calling thread.
func Open() (*Conn, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_NETFILTER)
	if err != nil {
		return nil, fmt.Errorf("netlink socket for nf_tables: %w", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("netlink socket for nf_tables: %w", err)
	}
	// Dumps fill the buffer; a large one saves calls. The limit of an ordinary
	// user applies where the capability is missing.
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 4<<20)
	return &Conn{fd: fd}, nil
}

// Close ends the connection.
func (c *Conn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fd < 0 {
		return nil
	}
	err := unix.Close(c.fd)
	c.fd = -1
	return err
}

// Commit carries out a batch as one transaction and resets it. Nothing is
// changed when it fails.
//
//	BATCH_BEGIN, messages…, BATCH_END   in one sendmsg
//	one acknowledgement, asked for with the last message; each message that
//	fails answers with its error before it
func (c *Conn) Commit(b *Batch) error {
	defer b.Reset()
	c.mu.Lock()
	defer c.mu.Unlock()
	size := 40
	for i := range b.sec {
		b.closeElements(i)
		size += len(b.sec[i])
	}
	if size == 40 {
		return nil
	}
	buf := make([]byte, 0, size)
	buf, at := appendHeader(buf, unix.NFNL_MSG_BATCH_BEGIN, unix.NLM_F_REQUEST, unix.NFPROTO_UNSPEC, unix.NFNL_SUBSYS_NFTABLES)
	binary.NativeEndian.PutUint32(buf[at:], uint32(len(buf)))
	for i := range b.sec {
		buf = append(buf, b.sec[i]...)
	}
	buf, at = appendHeader(buf, unix.NFNL_MSG_BATCH_END, unix.NLM_F_REQUEST, unix.NFPROTO_UNSPEC, unix.NFNL_SUBSYS_NFTABLES)
	binary.NativeEndian.PutUint32(buf[at:], uint32(len(buf)-at))

	first, last, types := c.number(buf)
	if err := c.send(buf); err != nil {
		return err
	}
	return c.acknowledge(first, last, types)
}

// number gives each message its sequence number and asks for an
// acknowledgement of the last one before BATCH_END.
func (c *Conn) number(buf []byte) (first, last uint32, types []uint16) {
	first = c.seq + 1
	lastAt := 0
	for at := 0; at < len(buf); {
		c.seq++
		binary.NativeEndian.PutUint32(buf[at+8:], c.seq)
		typ := binary.NativeEndian.Uint16(buf[at+4:])
		if typ != unix.NFNL_MSG_BATCH_END {
			lastAt, last = at, c.seq
		}
		types = append(types, typ)
		at += int(binary.NativeEndian.Uint32(buf[at:]))
	}
	flags := binary.NativeEndian.Uint16(buf[lastAt+6:])
	binary.NativeEndian.PutUint16(buf[lastAt+6:], flags|unix.NLM_F_ACK)
	return first, last, types
}

// send sends buf in one call; the socket's buffer must hold all of it.
func (c *Conn) send(buf []byte) error {
	if have, err := unix.GetsockoptInt(c.fd, unix.SOL_SOCKET, unix.SO_SNDBUF); err != nil {
		return fmt.Errorf("netlink send buffer: %w", err)
	} else if need := len(buf) + 4096; have < need {
		if err := unix.SetsockoptInt(c.fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, need); err != nil {
			_ = unix.SetsockoptInt(c.fd, unix.SOL_SOCKET, unix.SO_SNDBUF, need)
		}
	}
	for {
		err := unix.Sendto(c.fd, buf, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK})
		if err == nil {
			return nil
		}
		if !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("send %d bytes to nf_tables: %w", len(buf), err)
		}
	}
}

// acknowledge reads answers until the one to the last message.
func (c *Conn) acknowledge(first, last uint32, types []uint16) error {
	var failure error
	for {
		msgs, err := c.receive()
		if err != nil {
			return err
		}
		for len(msgs) >= unix.NLMSG_HDRLEN {
			n := int(binary.NativeEndian.Uint32(msgs))
			if n < unix.NLMSG_HDRLEN || n > len(msgs) {
				break
			}
			seq := binary.NativeEndian.Uint32(msgs[8:])
			if binary.NativeEndian.Uint16(msgs[4:]) == unix.NLMSG_ERROR && seq-first < uint32(len(types)) {
				errno := -int32(binary.NativeEndian.Uint32(msgs[unix.NLMSG_HDRLEN:]))
				if errno != 0 && failure == nil {
					failure = describe(types[seq-first], seq-first, unix.Errno(errno))
				}
				// An error to BATCH_BEGIN or BATCH_END is about the whole batch and
				// comes alone.
				if seq == last || seq == first || seq == last+1 {
					return failure
				}
			}
			msgs = msgs[min((n+3)&^3, len(msgs)):]
		}
	}
}

func describe(typ uint16, index uint32, errno unix.Errno) error {
	name := map[uint16]string{
		unix.NFT_MSG_NEWTABLE: "new table", unix.NFT_MSG_DELTABLE: "delete table",
		unix.NFT_MSG_NEWCHAIN: "new chain", unix.NFT_MSG_DELCHAIN: "delete chain",
		unix.NFT_MSG_NEWRULE: "new rule", unix.NFT_MSG_DELRULE: "delete rule",
		unix.NFT_MSG_NEWSET: "new set", unix.NFT_MSG_DELSET: "delete set",
		unix.NFT_MSG_NEWSETELEM: "new element", unix.NFT_MSG_DELSETELEM: "delete element",
	}[typ&0xff]
	if typ>>8 != unix.NFNL_SUBSYS_NFTABLES {
		name = "batch"
	}
	if errno == unix.ENOENT {
		return fmt.Errorf("nf_tables: %s (message %d): %w", name, index, ErrNotFound)
	}
	return fmt.Errorf("nf_tables: %s (message %d): %w", name, index, errno)
}

// receive reads what one recvmsg gives; the result is valid until the next call.
func (c *Conn) receive() ([]byte, error) {
	if c.rcv == nil {
		c.rcv = make([]byte, 64<<10)
	}
	for {
		n, _, err := unix.Recvfrom(c.fd, c.rcv, 0)
		switch {
		case err == nil:
			return c.rcv[:n], nil
		case errors.Is(err, unix.EINTR):
		default:
			return nil, fmt.Errorf("receive from nf_tables: %w", err)
		}
	}
}
