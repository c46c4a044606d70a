package core

import (
	"net/netip"
	"slices"

	networkingv1 "k8s.io/api/networking/v1"
)

var serviceCIDRs = networkingv1.SchemeGroupVersion.WithResource("servicecidrs")

// ranges are the pools of one family: that of the configuration first, then those
// of ServiceCIDR objects by name.
type ranges []*addressPool

func (r ranges) take(ip netip.Addr) error {
	for _, p := range r {
		if p.prefix.Contains(ip) {
			return p.take(ip)
		}
	}
	return errOtherNetwork
}

func (r ranges) next() (netip.Addr, error) {
	for _, p := range r {
		if ip, err := p.next(); err == nil {
			return ip, nil
		}
	}
	return netip.Addr{}, errFull
}

func (r ranges) free(ip netip.Addr) {
	for _, p := range r {
		p.free(ip)
	}
}

// prefixes are the ranges that addresses come from at the moment.
func (a *serviceAllocator) prefixes() []netip.Prefix {
	out := slices.Clone(a.env.ServiceCIDRs)
	if a.env.Objects == nil {
		return out
	}
	list, err := a.env.Objects.List(serviceCIDRs, "")
	if err != nil {
		return out // they are not served
	}
	for _, obj := range list {
		c := obj.(*networkingv1.ServiceCIDR)
		if c.DeletionTimestamp != nil {
			continue
		}
		for _, s := range c.Spec.CIDRs {
			if p, err := netip.ParsePrefix(s); err == nil && !slices.Contains(out, p.Masked()) {
				out = append(out, p.Masked())
			}
		}
	}
	return out
}

// setRangesLocked begins with empty pools.
func (a *serviceAllocator) setRangesLocked(prefixes []netip.Prefix) {
	a.now = prefixes
	clear(a.ips)
	for _, p := range prefixes {
		f := family(p.Addr())
		a.ips[f] = append(a.ips[f], newAddressPool(p))
	}
}
