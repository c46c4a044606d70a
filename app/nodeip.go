package app

import (
	"bufio"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"

	"github.com/periplus/periplus/linux/link"
)

// lonely is the node's address on a machine without any network: link-local, on
// the loopback interface, so that pods and Services work all the same.
var lonely = netip.MustParseAddr("169.254.43.1")

// nodeIP returns the configured address, or that of the interface with the
// default route, or the first global one, or lonely.
func nodeIP(c *Config) (netip.Addr, error) {
	if c.NodeIP != "" {
		return netip.ParseAddr(c.NodeIP)
	}
	interfaces, err := net.Interfaces()
	if err != nil {
		return netip.Addr{}, fmt.Errorf("node-ip: the interfaces cannot be listed: %w", err)
	}
	uplink := defaultInterface()
	var first netip.Addr
	for _, i := range interfaces {
		if i.Flags&net.FlagUp == 0 || i.Flags&net.FlagLoopback != 0 || ours(i.Name) {
			continue
		}
		addrs, err := i.Addrs()
		if err != nil {
			continue
		}
		for _, a := range addrs {
			p, err := netip.ParsePrefix(a.String())
			if err != nil || !p.Addr().Is4() || !p.Addr().IsGlobalUnicast() {
				continue
			}
			if i.Name == uplink {
				return p.Addr(), nil
			}
			if !first.IsValid() {
				first = p.Addr()
			}
		}
	}
	if first.IsValid() {
		return first, nil
	}
	if err := link.AddLoopback(lonely); err != nil {
		return netip.Addr{}, fmt.Errorf("node-ip: this machine has no address, and %s could not be added to lo: %w", lonely, err)
	}
	return lonely, nil
}

// ours reports whether an interface is one that Periplus makes for pods.
func ours(name string) bool {
	return name == "peri0" || strings.HasPrefix(name, "peri.") || strings.HasPrefix(name, "peri-") || strings.HasPrefix(name, "veth")
}

// defaultInterface is the interface of the IPv4 default route, or "".
func defaultInterface() string {
	f, err := os.Open("/proc/thread-self/net/route")
	if err != nil {
		return ""
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) > 7 && fields[1] == "00000000" && fields[7] == "00000000" {
			return fields[0]
		}
	}
	return ""
}
