package bridge

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"net/netip"
	"slices"
	"strings"

	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/cni"
	"github.com/periplus/periplus/linux/link"
	"github.com/periplus/periplus/linux/netns"
)

// hostIfPrefix begins the names of the host's ends.
const hostIfPrefix = "veth"

func owner(a cni.Attachment) string { return a.SandboxID + "/" + ifName(a) }

func ifName(a cni.Attachment) string {
	if a.IfName == "" {
		return "eth0"
	}
	return a.IfName
}

// hostIf names the host's end after the owner, so that Del finds it without a record.
func hostIf(owner string) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(owner))
	return fmt.Sprintf("%s%010x", hostIfPrefix, h.Sum64()&0xffffffffff)
}

// Add attaches a sandbox.
//
//  1. an address of each range
//  2. a veth pair: one end a port of the bridge and up, the other in the sandbox
//  3. in the sandbox: loopback up, address, interface up, default route
//  4. host ports
func (n *Network) Add(_ context.Context, a cni.Attachment) (res cni.Result, err error) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	if len(n.active) == 0 {
		return cni.Result{}, cni.ErrNotReady
	}
	who := owner(a)
	res.HostIf = hostIf(who)
	defer func() {
		if err != nil {
			res, err = cni.Result{}, fmt.Errorf("attach sandbox %s to the network: %w", a.SandboxID, errors.Join(err, n.detach(who)))
		}
	}()
	for _, p := range n.active {
		ip, err := p.Allocate(who, a.Wanted...)
		if err != nil {
			return res, err
		}
		res.Addresses = append(res.Addresses, netip.PrefixFrom(ip, p.Prefix().Bits()))
		res.Gateways = append(res.Gateways, p.Gateway())
	}
	res.MAC = hardwareAddr(res.Addresses[0].Addr())

	pod, err := link.OpenAt(a.NetNS)
	if err != nil {
		return res, err
	}
	defer pod.Close()
	pair := link.Pair{Name: res.HostIf, Peer: ifName(a), MTU: n.bridge.MTU, Bridge: n.bridge.Index, Other: pod, MAC: res.MAC}
	if err := n.link.AddPair(pair); err != nil {
		// What a process that died in the middle left: once more without it.
		if e := n.link.Remove(res.HostIf); e != nil {
			return res, errors.Join(err, e)
		}
		if err := n.link.AddPair(pair); err != nil {
			return res, err
		}
	}
	if err := setUpPod(pod, ifName(a), res); err != nil {
		return res, err
	}
	return res, n.mapPorts(a.PortMappings, res.Addresses)
}

// setUpPod configures the sandbox's side.
func setUpPod(pod *link.Conn, name string, res cni.Result) error {
	if err := pod.LoopbackUp(); err != nil {
		return err
	}
	eth, err := pod.Get(name)
	if err != nil {
		return err
	}
	for _, a := range res.Addresses {
		if err := pod.AddAddress(eth.Index, a); err != nil {
			return err
		}
	}
	if err := pod.Up(eth.Index); err != nil {
		return err
	}
	for _, via := range res.Gateways {
		if err := pod.SetRoute(link.Route{Via: via, Index: eth.Index}); err != nil {
			return err
		}
	}
	return nil
}

// Check verifies that the sandbox still has its interface and addresses.
func (n *Network) Check(_ context.Context, a cni.Attachment) error {
	n.mu.RLock()
	defer n.mu.RUnlock()
	who := owner(a)
	if _, err := n.link.Get(hostIf(who)); err != nil {
		return fmt.Errorf("check sandbox %s: %w", a.SandboxID, err)
	}
	pod, err := link.OpenAt(a.NetNS)
	if err != nil {
		return fmt.Errorf("check sandbox %s: %w", a.SandboxID, err)
	}
	defer pod.Close()
	eth, err := pod.Get(ifName(a))
	if err != nil {
		return fmt.Errorf("check sandbox %s: %w", a.SandboxID, err)
	}
	have, err := pod.Addresses(eth.Index)
	if err != nil {
		return err
	}
	for _, p := range n.active {
		ip, ok := p.Lookup(who)
		if !ok || !slices.ContainsFunc(have, func(x netip.Prefix) bool { return x.Addr() == ip }) {
			return fmt.Errorf("check sandbox %s: %s lacks its address of range %s", a.SandboxID, ifName(a), p.Prefix())
		}
	}
	return nil
}

// Del detaches a sandbox.
func (n *Network) Del(_ context.Context, a cni.Attachment) error {
	n.mu.RLock()
	defer n.mu.RUnlock()
	if err := n.detach(owner(a)); err != nil {
		return fmt.Errorf("detach sandbox %s from the network: %w", a.SandboxID, err)
	}
	return nil
}

// detach undoes Add; the address is free only when nothing uses it any more.
func (n *Network) detach(who string) error {
	var addrs []netip.Addr
	for _, p := range n.pools {
		if ip, ok := p.Lookup(who); ok {
			addrs = append(addrs, ip)
		}
	}
	err := errors.Join(n.unmapPorts(addrs), n.link.Remove(hostIf(who)))
	if err != nil {
		return err
	}
	for _, p := range n.pools {
		err = errors.Join(err, p.Release(who))
	}
	return err
}

// Collect detaches the sandboxes that are not in keep.
func (n *Network) Collect(_ context.Context, keep map[string]bool) error {
	n.mu.RLock()
	defer n.mu.RUnlock()
	var errs []error
	for _, p := range n.pools {
		for _, who := range p.Owners() {
			if id, _, _ := strings.Cut(who, "/"); keep[id] {
				continue
			}
			if err := n.detach(who); err != nil && !errors.Is(err, netns.ErrGone) {
				errs = append(errs, err)
				continue
			}
			n.cfg.Log.Debug("freed the address of a sandbox that has gone", base.KeyID, who)
		}
	}
	return errors.Join(errs...)
}
