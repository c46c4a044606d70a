package capture

import (
	"flag"
	"fmt"
	"io"
	"net/netip"
	"strconv"
	"strings"

	"github.com/periplus/periplus/linux/redirect"
	"github.com/periplus/periplus/mesh"
)

// Main puts the rules in place and shows them.
func Main(args []string, out io.Writer) error {
	c, err := Parse(args)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(out, c.Text()); err != nil {
		return err
	}
	return redirect.Apply(c)
}

// Parse reads the flags of istio-iptables.
func Parse(args []string) (redirect.Config, error) {
	f := flag.NewFlagSet("mesh-init", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	outbound := f.Uint("p", mesh.OutboundPort, "port that outbound connections are sent to")
	inbound := f.Uint("z", mesh.InboundPort, "port that inbound connections are sent to")
	id := f.Uint("u", mesh.ProxyID, "user and group of the proxy")
	mode := f.String("m", "REDIRECT", "REDIRECT")
	include := f.String("i", "*", "destinations that are captured")
	exclude := f.String("x", "", "destinations that are left alone")
	inPorts := f.String("b", "*", "inbound ports that are captured")
	inExclude := f.String("d", "", "inbound ports that are left alone")
	outExclude := f.String("o", "", "outbound ports that are left alone")
	if err := f.Parse(args); err != nil {
		return redirect.Config{}, err
	}
	if *mode != "REDIRECT" {
		return redirect.Config{}, fmt.Errorf("-m %s: must be REDIRECT", *mode)
	}
	c := redirect.Config{OutboundPort: uint16(*outbound), InboundPort: uint16(*inbound), TunnelPort: mesh.TunnelPort, ID: uint32(*id)}
	var err error
	if *inPorts != "*" {
		if c.InboundPorts, err = ports("b", *inPorts); err != nil {
			return c, err
		}
	}
	if c.ExcludeInbound, err = ports("d", *inExclude); err != nil {
		return c, err
	}
	if c.ExcludeOutbound, err = ports("o", *outExclude); err != nil {
		return c, err
	}
	if *include != "*" {
		if c.OutboundRanges, err = ranges("i", *include); err != nil {
			return c, err
		}
	}
	c.ExcludeRanges, err = ranges("x", *exclude)
	return c, err
}

// ports reads numbers; the result is never nil, since nil would be all.
func ports(flag, v string) ([]uint16, error) {
	out := []uint16{}
	for p := range strings.SplitSeq(v, ",") {
		if p = strings.TrimSpace(p); p == "" {
			continue
		}
		n, err := strconv.ParseUint(p, 10, 16)
		if err != nil || n == 0 {
			return nil, fmt.Errorf("-%s: port %q must be a number between 1 and 65535", flag, p)
		}
		out = append(out, uint16(n))
	}
	return out, nil
}

func ranges(flag, v string) ([]netip.Prefix, error) {
	out := []netip.Prefix{}
	for p := range strings.SplitSeq(v, ",") {
		if p = strings.TrimSpace(p); p == "" {
			continue
		}
		prefix, err := netip.ParsePrefix(p)
		if err != nil {
			return nil, fmt.Errorf("-%s: %w", flag, err)
		}
		out = append(out, prefix)
	}
	return out, nil
}
