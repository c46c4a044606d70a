package bridge

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"sync"

	"github.com/periplus/periplus/cni"
	"github.com/periplus/periplus/linux/nft"
)

// ErrPortInUse is returned when a host port already belongs to another pod.
var ErrPortInUse = errors.New("host port is in use by another pod")

// A portTable mirrors the host ports in the kernel: the kernel's is the record
// that survives a restart.
type portTable struct {
	mu    sync.Mutex // guards ports, and changes in the kernel
	ports map[hostPort]netip.AddrPort
}

type hostPort struct {
	family nft.Family
	set    string
	key    string // as the kernel has it
}

// load reads what is in the kernel.
func (t *portTable) load(c *nft.Conn, f nft.Family, table string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ports == nil {
		t.ports = map[hostPort]netip.AddrPort{}
	}
	for _, set := range []string{mapAnyPort, mapHostPort} {
		err := c.Elements(f, table, set, func(e nft.Element) {
			if n := f.AddrLen(); len(e.Data) >= n+2 {
				a, _ := netip.AddrFromSlice(e.Data[:n])
				t.ports[hostPort{f, set, string(e.Key)}] = netip.AddrPortFrom(a, binary.BigEndian.Uint16(e.Data[n:]))
			}
		})
		if err != nil && !errors.Is(err, nft.ErrNotFound) {
			return fmt.Errorf("read host ports: %w", err)
		}
	}
	return nil
}

// addTo puts all host ports of a family into a table that is made anew.
func (t *portTable) addTo(b *nft.Batch, f nft.Family) {
	t.mu.Lock()
	defer t.mu.Unlock()
	done := map[netip.Addr]bool{}
	for k, e := range t.ports {
		if k.family != f {
			continue
		}
		b.AddElement(k.set, []byte(k.key), endpointData(e))
		if a := e.Addr(); !done[a] {
			done[a] = true
			b.AddElement(setHairpin, append(a.AsSlice(), a.AsSlice()...), nil)
		}
	}
}

func (t *portTable) reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ports = nil
}

// mapPorts leads host ports to a pod.
func (n *Network) mapPorts(list []cni.PortMapping, addrs []netip.Prefix) error {
	if len(list) == 0 {
		return nil
	}
	n.ports.mu.Lock()
	defer n.ports.mu.Unlock()
	if err := n.routeLoopback(); err != nil {
		return err
	}
	for _, p := range addrs {
		f, ip := familyOf(p), p.Addr()
		b := nft.NewBatch(f, n.cfg.Table)
		added := map[hostPort]netip.AddrPort{}
		for _, m := range list {
			k, ok, err := keyOf(m, f)
			if err != nil {
				return err
			}
			if !ok {
				continue
			}
			e := netip.AddrPortFrom(ip, m.ContainerPort)
			if have, used := n.ports.ports[k]; used && have.Addr() != ip {
				return fmt.Errorf("%s port %d: %w at %s", m.Protocol, m.HostPort, ErrPortInUse, have.Addr())
			} else if !used {
				b.AddElement(k.set, []byte(k.key), endpointData(e))
				added[k] = e
			}
		}
		if len(added) == 0 {
			continue
		}
		b.AddElement(setHairpin, append(ip.AsSlice(), ip.AsSlice()...), nil)
		if err := n.nft.Commit(b); err != nil {
			return fmt.Errorf("map host ports: %w", err)
		}
		maps.Copy(n.ports.ports, added)
	}
	return nil
}

// routeLoopback lets connections to 127.0.0.1 leave through the bridge, once there is
// a host port for them. A rule keeps pods from going the other way.
func (n *Network) routeLoopback() error {
	name := "ipv4/conf/" + n.cfg.Bridge + "/route_localnet"
	if err := n.link.SetSysctl(name, "1"); err != nil {
		return fmt.Errorf("set sysctl %s=1: %w", name, err)
	}
	return nil
}

// unmapPorts removes the host ports that lead to these addresses.
func (n *Network) unmapPorts(addrs []netip.Addr) error {
	n.ports.mu.Lock()
	defer n.ports.mu.Unlock()
	if len(n.ports.ports) == 0 {
		return nil
	}
	for _, a := range addrs {
		f := familyOf(netip.PrefixFrom(a, a.BitLen()))
		b := nft.NewBatch(f, n.cfg.Table)
		for k, e := range n.ports.ports {
			if e.Addr() == a {
				b.RemoveElement(k.set, []byte(k.key))
			}
		}
		if b.Len() == 0 {
			continue
		}
		b.RemoveElement(setHairpin, append(a.AsSlice(), a.AsSlice()...))
		if err := n.nft.Commit(b); err != nil && !errors.Is(err, nft.ErrNotFound) {
			return fmt.Errorf("remove host ports: %w", err)
		}
		for k, e := range n.ports.ports {
			if e.Addr() == a {
				delete(n.ports.ports, k)
			}
		}
	}
	return nil
}

// keyOf is where a mapping is in the kernel; ok is false when it is of the other family.
func keyOf(m cni.PortMapping, f nft.Family) (k hostPort, ok bool, err error) {
	proto, known := map[string]byte{"tcp": 6, "TCP": 6, "": 6, "udp": 17, "UDP": 17, "sctp": 132, "SCTP": 132}[m.Protocol]
	if !known {
		return k, false, fmt.Errorf("host port %d: protocol %q is unknown, must be tcp, udp or sctp", m.HostPort, m.Protocol)
	}
	if m.HostPort == 0 {
		return k, false, nil
	}
	key := []byte{proto, 0, 0, 0, byte(m.HostPort >> 8), byte(m.HostPort), 0, 0}
	if !m.HostIP.IsValid() || m.HostIP.IsUnspecified() {
		return hostPort{f, mapAnyPort, string(key)}, true, nil
	}
	ip := m.HostIP.Unmap()
	return hostPort{f, mapHostPort, string(ip.AsSlice()) + string(key)}, ip.Is6() == (f == nft.IPv6), nil
}
