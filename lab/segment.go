package lab

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os/exec"
	"syscall"

	"github.com/periplus/periplus/linux/link"
	"github.com/periplus/periplus/linux/nft"
)

// mtu of segments, that of Ethernet.
const mtu = 1500

// A SegmentConfig describes a network segment.
type SegmentConfig struct {
	// Name of the bridge, at most 15 characters.
	Name string
	// Address of this machine in it, with the length of the network. The zero value
	// hides the segment: it is in a network namespace of its own and leads nowhere.
	Address netip.Prefix
}

// A Segment is a network between machines.
type Segment struct {
	config SegmentConfig
	link   *link.Conn
	bridge link.Info

	hidden *exec.Cmd // holds the namespace of a hidden segment
	hold   io.Closer
}

// NewSegment makes a segment, or takes over the visible one that is there.
func NewSegment(c SegmentConfig) (*Segment, error) {
	s := &Segment{config: c}
	if err := s.open(); err != nil {
		return nil, errors.Join(fmt.Errorf("network segment %s: %w", c.Name, err), s.Close())
	}
	return s, nil
}

func (s *Segment) open() (err error) {
	visible := s.config.Address.IsValid()
	if visible {
		s.link, err = link.Open()
	} else {
		if err = s.hide(); err == nil {
			s.link, err = link.OpenAt(fmt.Sprintf("/proc/%d/ns/net", s.hidden.Process.Pid))
		}
	}
	if err != nil {
		return err
	}
	if s.bridge, err = s.link.EnsureBridge(s.config.Name, nil, mtu); err != nil || !visible {
		return err
	}
	if err := s.link.AddAddress(s.bridge.Index, s.config.Address); err != nil {
		return err
	}
	if err := s.link.SetSysctl("ipv4/ip_forward", "1"); err != nil {
		return err
	}
	return s.masquerade()
}

// hide starts a process in a network namespace of its own; it ends with its input.
func (s *Segment) hide() error {
	s.hidden = exec.Command("/bin/sh", "-c", "echo ready; exec cat >/dev/null") //nolint:noctx // ends with its standard input
	s.hidden.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Setpgid: true}
	hold, err := s.hidden.StdinPipe()
	if err != nil {
		return err
	}
	out, err := s.hidden.StdoutPipe()
	if err != nil {
		return err
	}
	if err := s.hidden.Start(); err != nil {
		s.hidden = nil
		return err
	}
	s.hold = hold
	_, err = bufio.NewReader(out).ReadString('\n')
	return err
}

func (s *Segment) table() string { return "periplus-lab-" + s.config.Name }

// masquerade lets machines reach what this machine reaches.
func (s *Segment) masquerade() error {
	c, err := nft.Open()
	if err != nil {
		return err
	}
	defer c.Close()
	b := nft.NewBatch(nft.IPv4, s.table())
	b.AddTable()
	b.RemoveTable()
	b.AddTable()
	b.AddSet(nft.Set{Name: "machines", KeyType: nft.IPv4.AddrType(), KeyLen: nft.IPv4.AddrLen(), Interval: true})
	b.AddRange("machines", s.config.Address.Masked())
	const post = "postrouting"
	b.AddChain(post, &nft.Hook{Type: "nat", Num: nft.Postrouting, Priority: nft.PrioritySrcNAT})
	b.AddRule(post, "", nft.NewRule().SrcAddr(nft.IPv4, nft.R(0)).In("machines", nft.R(0)).OIfName(s.config.Name, true).Masquerade())
	return c.Commit(b)
}

// Close gives a visible segment up, which stays; a hidden one ends.
func (s *Segment) Close() error {
	var err error
	if s.link != nil {
		err = s.link.Close()
		s.link = nil
	}
	if s.hidden != nil {
		err = errors.Join(err, s.hold.Close(), s.hidden.Wait())
		s.hidden = nil
	}
	return err
}

// Remove removes a visible segment for good.
func (s *Segment) Remove() error {
	c, err := nft.Open()
	if err != nil {
		return err
	}
	defer c.Close()
	b := nft.NewBatch(nft.IPv4, s.table())
	b.AddTable()
	b.RemoveTable()
	return errors.Join(c.Commit(b), s.link.Remove(s.config.Name), s.Close())
}
