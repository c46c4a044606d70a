package core

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/periplus/periplus/apiserver/registry"
)

// The pools say what is probably free; the claims in the store decide. They are filled
// from the watch cache, and again when they are asked for what they do not have: other
// API servers give back, too.

// A lease is what one write takes and gives up.
type lease struct {
	takenIPs, freedIPs     []netip.Addr
	takenPorts, freedPorts []int32
	of                     *corev1.Service // whose UID is known
	began                  time.Time
}

// begin takes from the pools what the service lacks or asks for.
func (a *serviceAllocator) begin(ctx context.Context, svc, old *corev1.Service) (func(stored bool), error) {
	before := svc.Spec.DeepCopy()
	l, err := a.choose(svc, old)
	if err != nil && a.refresh(ctx) {
		svc.Spec = *before
		l, err = a.choose(svc, old)
	}
	if err != nil {
		return nil, err
	}
	return func(stored bool) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.finishLocked(l, stored)
	}, nil
}

// refresh fills the pools anew, by what the store holds now. It reports whether it could.
func (a *serviceAllocator) refresh(ctx context.Context) bool {
	objects, ok := a.env.Objects.(registry.Syncer)
	if !ok || objects.Sync(ctx) != nil {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.resetLocked(a.prefixes())
	return true
}

func (a *serviceAllocator) choose(svc, old *corev1.Service) (*lease, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if now := a.prefixes(); !slices.Equal(now, a.now) {
		a.resetLocked(now)
	}
	if err := a.loadLocked(); err != nil {
		return nil, err
	}
	l := &lease{of: svc, began: time.Now()}
	a.leases[l] = struct{}{}
	err := a.familiesLocked(svc, old)
	if err == nil {
		err = a.addressesLocked(svc, old, l)
	}
	if err == nil {
		err = a.nodePortsLocked(svc, old, l)
	}
	if err != nil {
		a.finishLocked(l, false)
		return nil, err
	}
	return l, nil
}

func (a *serviceAllocator) finishLocked(l *lease, stored bool) {
	delete(a.leases, l)
	ips, ports := l.takenIPs, l.takenPorts
	if stored {
		ips, ports = l.freedIPs, l.freedPorts
	}
	for _, ip := range ips {
		a.freeIPLocked(ip)
	}
	for _, port := range ports {
		a.ports.free(port)
	}
}

func (a *serviceAllocator) freeIPLocked(ip netip.Addr) {
	if pool := a.ips[family(ip)]; pool != nil {
		pool.free(ip)
	}
}

// markLocked notes that an address is somebody's, however often.
func (a *serviceAllocator) markLocked(ip netip.Addr) {
	if pool := a.ips[family(ip)]; pool != nil {
		_ = pool.take(ip)
	}
}

// resetLocked begins with pools in which only what writes have taken that are under way
// is marked, or that have ended nobody knows how, not long ago.
func (a *serviceAllocator) resetLocked(prefixes []netip.Prefix) {
	a.loaded = false
	a.setRangesLocked(prefixes)
	a.ports = newPortPool(a.ports.low, a.ports.high)
	for l := range a.leases {
		if a.seen(l) || time.Since(l.began) > surely {
			delete(a.leases, l)
			continue
		}
		for _, ip := range l.takenIPs {
			a.markLocked(ip)
		}
		for _, port := range l.takenPorts {
			_ = a.ports.take(port)
		}
	}
}

// seen reports whether a write was stored: its Service has what it took.
func (a *serviceAllocator) seen(l *lease) bool {
	svc := a.service(l.of.Namespace, l.of.Name)
	if svc == nil || svc.UID != l.of.UID {
		return false
	}
	ips, ports := clusterIPsOf(svc), allNodePorts(svc)
	return !slices.ContainsFunc(l.takenIPs, func(ip netip.Addr) bool { return !slices.Contains(ips, ip) }) &&
		!slices.ContainsFunc(l.takenPorts, func(port int32) bool { return !slices.Contains(ports, port) })
}

// loadLocked marks what stored services hold, and what IPAddress objects name.
func (a *serviceAllocator) loadLocked() error {
	if a.loaded || a.env.Objects == nil {
		return nil
	}
	list, err := a.env.Objects.List(serviceKind, "")
	if err != nil {
		return fmt.Errorf("reading the addresses of existing services: %w", err)
	}
	for _, obj := range list {
		svc := obj.(*corev1.Service)
		for _, ip := range clusterIPsOf(svc) {
			a.markLocked(ip)
		}
		for _, port := range allNodePorts(svc) {
			_ = a.ports.take(port)
		}
	}
	a.loaded = true
	list, err = a.env.Objects.List(ipAddresses, "")
	if err != nil {
		return nil // they are not served
	}
	for _, obj := range list {
		address, ok := obj.(*networkingv1.IPAddress)
		if !ok || a.orphan(obj) {
			continue
		}
		if ip, ok := parseAddr(address.Name); ok {
			a.markLocked(ip)
		}
	}
	return nil
}

func (a *serviceAllocator) releaseAll(svc *corev1.Service) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.loaded && a.env.Objects != nil {
		return // nothing is marked yet
	}
	for _, ip := range clusterIPsOf(svc) {
		a.freeIPLocked(ip)
	}
	for _, port := range allNodePorts(svc) {
		a.ports.free(port)
	}
}

// fullError says that no address is left.
func fullError(svc *corev1.Service, err error) error {
	return apierrors.NewInternalError(fmt.Errorf("failed to allocate a serviceIP for Service %q: %w", svc.Name, err))
}
