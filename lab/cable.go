package lab

import (
	"fmt"
	"hash/fnv"
	"net/netip"

	"github.com/periplus/periplus/linux/link"
)

// Uplink is the name of a machine's interface.
const Uplink = "uplink"

// socket is the name of the segment's end of a machine's cable.
func (m *Machine) socket() string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(m.config.Dir))
	return fmt.Sprintf("lab%08x", h.Sum32())
}

// plug gives the machine its interface: a cable to the segment, or, without one, a
// cable whose other end is loose.
func (m *Machine) plug() error {
	inside, err := link.OpenAt(m.NetNS())
	if err != nil {
		return err
	}
	defer inside.Close()
	if err := inside.LoopbackUp(); err != nil {
		return err
	}
	if s := m.config.Segment; s != nil {
		// The kernel takes a while to remove the cable of a machine that has ended.
		if err := s.link.Remove(m.socket()); err != nil {
			return err
		}
		err = s.link.AddPair(link.Pair{Name: m.socket(), Peer: Uplink, MTU: mtu, Bridge: s.bridge.Index, Other: inside})
	} else {
		err = inside.AddPair(link.Pair{Name: "wire", Peer: Uplink, MTU: mtu, Other: inside})
	}
	if err != nil {
		return err
	}
	up, err := inside.Get(Uplink)
	if err != nil {
		return err
	}
	if err := inside.AddAddress(up.Index, m.config.Address); err != nil {
		return err
	}
	if err := inside.Up(up.Index); err != nil {
		return err
	}
	return inside.SetRoute(link.Route{Via: m.gateway(), Index: up.Index})
}

// gateway is the configured one, or the first address of the network.
func (m *Machine) gateway() netip.Addr {
	if m.config.Gateway.IsValid() {
		return m.config.Gateway
	}
	return m.config.Address.Masked().Addr().Next()
}

// Cut pulls the machine's cable out of the segment.
func (m *Machine) Cut() error { return m.carrier(false) }

// Heal plugs it in again.
func (m *Machine) Heal() error { return m.carrier(true) }

func (m *Machine) carrier(on bool) error {
	s := m.config.Segment
	if s == nil {
		return fmt.Errorf("machine %s has no cable", m.config.Name)
	}
	end, err := s.link.Get(m.socket())
	if err != nil {
		return err
	}
	if on {
		return s.link.Up(end.Index)
	}
	return s.link.Down(end.Index)
}
