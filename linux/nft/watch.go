package nft

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// A Watch tells when somebody removes a table. The kernel wakes it only for
// removals, so that it costs nothing while rules are used and elements change.
type Watch struct {
	file *os.File
	lost chan struct{}
	done chan struct{}
}

// Watch starts to watch a table in the namespace of c. What c itself does is
// not told. The caller must be in the same namespace.
func (c *Conn) Watch(f Family, table string) (*Watch, error) {
	sa, err := unix.Getsockname(c.fd)
	if err != nil {
		return nil, fmt.Errorf("netlink address: %w", err)
	}
	var self uint32
	if nl, ok := sa.(*unix.SockaddrNetlink); ok {
		self = nl.Pid
	}
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_NETFILTER)
	if err != nil {
		return nil, fmt.Errorf("netlink socket for nf_tables: %w", err)
	}
	if err := subscribe(fd); err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("watch nf_tables: %w", err)
	}
	w := &Watch{file: os.NewFile(uintptr(fd), "nf_tables events"), lost: make(chan struct{}, 1), done: make(chan struct{})}
	go w.read(f, table, self)
	return w, nil
}

// Lost gets a token when the table has been removed, or may have been.
func (w *Watch) Lost() <-chan struct{} { return w.lost }

// Close ends the watch.
func (w *Watch) Close() error {
	err := w.file.Close()
	<-w.done
	return err
}

// subscribe joins the group of nf_tables events with a filter on the first
// message of each datagram: a table that goes comes with its rules, sets and
// chains, in that order.
func subscribe(fd int) error {
	low := uint32(4) // where the low byte of nlmsg_type is
	if binary.NativeEndian.Uint16([]byte{0, 1}) == 1 {
		low = 5
	}
	pass := []uint32{unix.NFT_MSG_DELTABLE, unix.NFT_MSG_DELCHAIN, unix.NFT_MSG_DELRULE, unix.NFT_MSG_DELSET}
	prog := []unix.SockFilter{{Code: unix.BPF_LD | unix.BPF_B | unix.BPF_ABS, K: low}}
	for i, t := range pass {
		prog = append(prog, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: t, Jt: uint8(len(pass) - i)})
	}
	prog = append(prog,
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: 0},
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: 0xffffffff})
	err := unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER,
		&unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]})
	if err != nil {
		return err
	}
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	return unix.SetsockoptInt(fd, unix.SOL_NETLINK, unix.NETLINK_ADD_MEMBERSHIP, unix.NFNLGRP_NFTABLES)
}

func (w *Watch) read(f Family, table string, self uint32) {
	defer close(w.done)
	buf := make([]byte, 16<<10)
	for {
		n, err := w.file.Read(buf)
		switch {
		case errors.Is(err, unix.ENOBUFS):
			w.signal() // events were lost: let the owner look
			continue
		case err != nil:
			return
		}
		for msgs := buf[:n]; len(msgs) >= unix.NLMSG_HDRLEN+4; {
			size := int(binary.NativeEndian.Uint32(msgs))
			if size < unix.NLMSG_HDRLEN+4 || size > len(msgs) {
				break
			}
			if binary.NativeEndian.Uint16(msgs[4:]) == unix.NFNL_SUBSYS_NFTABLES<<8|unix.NFT_MSG_DELTABLE &&
				binary.NativeEndian.Uint32(msgs[12:]) != self && msgs[unix.NLMSG_HDRLEN] == byte(f) &&
				cstring(find(msgs[unix.NLMSG_HDRLEN+4:size], unix.NFTA_TABLE_NAME)) == table {
				w.signal()
			}
			msgs = msgs[min((size+3)&^3, len(msgs)):]
		}
	}
}

func (w *Watch) signal() {
	select {
	case w.lost <- struct{}{}:
	default:
	}
}
