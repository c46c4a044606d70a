package link

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/periplus/periplus/linux/netns"
)

// ErrNotFound is returned when there is no such interface.
var ErrNotFound = errors.New("no such interface")

// A Conn is a connection to rtnetlink in one network namespace.
type Conn struct {
	h        *netlink.Handle
	ns       *netns.NS
	removals removals
}

// Open connects to the network namespace of the calling thread.
func Open() (*Conn, error) {
	ns, err := netns.Current()
	if err != nil {
		return nil, err
	}
	return open(ns)
}

// OpenAt connects to the network namespace pinned at path.
func OpenAt(path string) (*Conn, error) {
	ns, err := netns.Open(path)
	if err != nil {
		return nil, err
	}
	return open(ns)
}

func open(ns *netns.NS) (*Conn, error) {
	c := &Conn{ns: ns}
	err := ns.Do(func() (err error) {
		c.h, err = netlink.NewHandle(unix.NETLINK_ROUTE)
		return err
	})
	if err != nil {
		_ = ns.Close()
		return nil, fmt.Errorf("rtnetlink: %w", err)
	}
	return c, nil
}

// Close ends the connection.
func (c *Conn) Close() error {
	c.h.Close()
	return c.ns.Close()
}

// SetSysctl writes a network sysctl of the namespace, named as below
// /proc/sys/net, unless it has that value. A missing sysctl is os.ErrNotExist.
func (c *Conn) SetSysctl(name, value string) error {
	path := "/proc/sys/net/" + name
	return c.ns.Do(func() error {
		if have, err := os.ReadFile(path); err != nil {
			return err
		} else if strings.TrimSpace(string(have)) == value {
			return nil
		}
		return os.WriteFile(path, []byte(value), 0o644)
	})
}

// An Info is what callers need to know of an interface.
type Info struct {
	Index int
	Name  string
	MTU   int
	MAC   net.HardwareAddr
	Kind  string // "bridge", "veth" …
	Up    bool
}

// Get returns the interface of that name.
func (c *Conn) Get(name string) (Info, error) {
	l, err := c.get(name)
	if err != nil {
		return Info{}, err
	}
	return info(l), nil
}

func info(l netlink.Link) Info {
	a := l.Attrs()
	return Info{Index: a.Index, Name: a.Name, MTU: a.MTU, MAC: a.HardwareAddr, Kind: l.Type(), Up: a.Flags&net.FlagUp != 0}
}

func (c *Conn) get(name string) (netlink.Link, error) {
	l, err := c.h.LinkByName(name)
	var missing netlink.LinkNotFoundError
	if errors.As(err, &missing) {
		return nil, fmt.Errorf("%s: %w", name, ErrNotFound)
	}
	if err != nil {
		return nil, fmt.Errorf("interface %s: %w", name, err)
	}
	return l, nil
}

// byIndex is a link that only says which one it is.
func byIndex(index int) netlink.Link {
	return &netlink.GenericLink{LinkAttrs: netlink.LinkAttrs{Index: index}}
}

// Up brings an interface up.
func (c *Conn) Up(index int) error {
	if err := c.h.LinkSetUp(byIndex(index)); err != nil {
		return fmt.Errorf("bring up interface %d: %w", index, err)
	}
	return nil
}

// Down takes an interface down.
func (c *Conn) Down(index int) error {
	if err := c.h.LinkSetDown(byIndex(index)); err != nil {
		return fmt.Errorf("take down interface %d: %w", index, err)
	}
	return nil
}

// LoopbackUp brings the loopback interface up.
func (c *Conn) LoopbackUp() error { return c.Up(1) }

// UplinkMTU is the MTU of the interface that the default route uses, else the
// smallest of the interfaces that are up, else 1500.
func (c *Conn) UplinkMTU() int {
	routes, err := c.h.RouteListFiltered(netlink.FAMILY_V4, &netlink.Route{Table: unix.RT_TABLE_MAIN}, netlink.RT_FILTER_TABLE)
	if err == nil {
		for _, r := range routes {
			if (r.Dst == nil || r.Dst.IP.IsUnspecified()) && r.LinkIndex > 0 {
				if l, err := c.h.LinkByIndex(r.LinkIndex); err == nil {
					return l.Attrs().MTU
				}
			}
		}
	}
	return 1500
}

// ipNet converts a prefix, keeping the bits of the host.
func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}
