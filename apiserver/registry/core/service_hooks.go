package core

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	netutils "k8s.io/utils/net"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/validation"
)

// A serviceAllocator hands out cluster IPs and node ports.
//
//	first write   everything that stored services hold is marked as taken
//	BeginCreate   takes what the service lacks or asks for
//	BeginUpdate   takes what is new; what is given up is released once stored
//	finish(false) gives back what was taken: the write failed or was a dry run
//	AfterDelete   gives back all
type serviceAllocator struct {
	env registry.Env

	mu     sync.Mutex // guards all below and what it points to
	loaded bool
	leases map[*lease]struct{} // writes under way, and those of which nobody knows how they ended
	now    []netip.Prefix      // what ips are of
	ips    map[corev1.IPFamily]ranges
	order  []corev1.IPFamily // as configured; the first is the default
	ports  *portPool
}

func newServiceAllocator(env registry.Env) *serviceAllocator {
	low, high := env.NodePortLow, env.NodePortHigh
	if high == 0 {
		low, high = 30000, 32767
	}
	a := &serviceAllocator{env: env, leases: map[*lease]struct{}{}, ips: map[corev1.IPFamily]ranges{}, ports: newPortPool(low, high)}
	for _, prefix := range env.ServiceCIDRs {
		if f := family(prefix.Addr()); !slices.Contains(a.order, f) {
			a.order = append(a.order, f)
		}
	}
	a.setRangesLocked(env.ServiceCIDRs)
	return a
}

func family(ip netip.Addr) corev1.IPFamily {
	if ip.Unmap().Is4() {
		return corev1.IPv4Protocol
	}
	return corev1.IPv6Protocol
}

func (a *serviceAllocator) hooks() registry.Hooks {
	return registry.Hooks{
		BeginCreate: func(ctx context.Context, obj runtime.Object, _ bool) (func(bool), error) {
			return a.begin(ctx, obj.(*corev1.Service), nil)
		},
		BeginUpdate: func(ctx context.Context, obj, old runtime.Object, _ bool) (func(bool), error) {
			svc, before := obj.(*corev1.Service), old.(*corev1.Service)
			if validation.Equal(svc.Spec, before.Spec) {
				return func(bool) {}, nil // metadata or status
			}
			return a.begin(ctx, svc, before)
		},
		AfterDelete: func(_ context.Context, obj runtime.Object) { a.releaseAll(obj.(*corev1.Service)) },
		Claims:      a,
	}
}

// clusterIPsOf lists the addresses that a service holds.
func clusterIPsOf(svc *corev1.Service) []netip.Addr {
	if !hasClusterIP(svc) || svc.Spec.ClusterIP == corev1.ClusterIPNone {
		return nil
	}
	ips := svc.Spec.ClusterIPs
	if len(ips) == 0 && svc.Spec.ClusterIP != "" {
		ips = []string{svc.Spec.ClusterIP}
	}
	var out []netip.Addr
	for _, s := range ips {
		if ip, ok := parseAddr(s); ok {
			out = append(out, ip)
		}
	}
	return out
}

// parseAddr also accepts leading zeros, which old objects may have.
func parseAddr(s string) (netip.Addr, bool) {
	ip, ok := netip.AddrFromSlice(netutils.ParseIPSloppy(s))
	return ip.Unmap(), ok
}

// allNodePorts lists the node ports that a service holds, each once.
func allNodePorts(svc *corev1.Service) []int32 {
	ports := sortedNodePorts(svc)
	if port := svc.Spec.HealthCheckNodePort; port != 0 && needsHealthCheckPort(svc) && !slices.Contains(ports, port) {
		ports = append(ports, port)
	}
	return ports
}

// addressesLocked gives the service an address of each of its families.
func (a *serviceAllocator) addressesLocked(svc, old *corev1.Service, l *lease) error {
	var held []netip.Addr
	if old != nil {
		held = clusterIPsOf(old)
	}
	if !hasClusterIP(svc) || headless(svc) {
		l.freedIPs = held
		return nil
	}
	spec := &svc.Spec
	if spec.ClusterIPs == nil {
		spec.ClusterIPs = make([]string, 0, len(spec.IPFamilies))
	}
	for i, f := range spec.IPFamilies {
		if i >= len(spec.ClusterIPs) {
			spec.ClusterIPs = append(spec.ClusterIPs, "")
		}
		pool := a.ips[f]
		if pool == nil {
			continue // a family of a cluster that was configured differently
		}
		if spec.ClusterIPs[i] == "" {
			ip, err := pool.next()
			if err != nil {
				return fullError(svc, err)
			}
			l.takenIPs = append(l.takenIPs, ip)
			spec.ClusterIPs[i] = ip.String()
			continue
		}
		ip, ok := parseAddr(spec.ClusterIPs[i])
		if !ok {
			return apierrors.NewInternalError(fmt.Errorf("failed to parse service IP %q", spec.ClusterIPs[i]))
		}
		if slices.Contains(held, ip) {
			continue
		}
		if err := pool.take(ip); err != nil {
			return invalidService(svc, field.Invalid(field.NewPath("spec", "clusterIPs"), spec.ClusterIPs, fmt.Sprintf("failed to allocate IP %v: %v", spec.ClusterIPs[i], err)))
		}
		l.takenIPs = append(l.takenIPs, ip)
	}
	if len(spec.ClusterIPs) > 0 {
		spec.ClusterIP = spec.ClusterIPs[0]
	}
	now := clusterIPsOf(svc)
	for _, ip := range held {
		if !slices.Contains(now, ip) {
			l.freedIPs = append(l.freedIPs, ip)
		}
	}
	return nil
}

// nodePortsLocked gives a node port to each port that wants one. Ports of the
// same number and different protocols share theirs.
func (a *serviceAllocator) nodePortsLocked(svc, old *corev1.Service, l *lease) error {
	var held []int32
	if old != nil {
		held = allNodePorts(old)
	}
	mine := func(port int32) bool { return slices.Contains(held, port) || slices.Contains(l.takenPorts, port) }
	take := func(port int32) error {
		if mine(port) {
			return nil
		}
		err := a.ports.take(port)
		if err == nil {
			l.takenPorts = append(l.takenPorts, port)
		}
		return err
	}
	next := func() (int32, error) {
		port, err := a.ports.next()
		if err == nil {
			l.takenPorts = append(l.takenPorts, port)
		}
		return port, err
	}
	if hasNodePorts(svc) {
		shared := map[int32]int32{} // node port by port
		for i := range svc.Spec.Ports {
			port := &svc.Spec.Ports[i]
			if port.NodePort == 0 {
				continue
			}
			if err := take(port.NodePort); err != nil {
				return invalidService(svc, field.Invalid(field.NewPath("spec", "ports").Index(i).Child("nodePort"), port.NodePort, err.Error()))
			}
			if shared[port.Port] == 0 {
				shared[port.Port] = port.NodePort
			}
		}
		for i := range svc.Spec.Ports {
			port := &svc.Spec.Ports[i]
			if port.NodePort != 0 || !wantsNodePorts(svc) {
				continue
			}
			if port.NodePort = shared[port.Port]; port.NodePort != 0 && !usedWith(svc, i) {
				continue
			}
			n, err := next()
			if err != nil {
				return apierrors.NewInternalError(fmt.Errorf("failed to allocate a nodePort: %w", err))
			}
			port.NodePort, shared[port.Port] = n, n
		}
	}
	if needsHealthCheckPort(svc) {
		if err := healthCheckPort(svc, take, next); err != nil {
			return apierrors.NewInternalError(err)
		}
	}
	now := allNodePorts(svc)
	for _, port := range held {
		if !slices.Contains(now, port) {
			l.freedPorts = append(l.freedPorts, port)
		}
	}
	return nil
}

// usedWith reports whether another port of the same protocol has the node port
// of port i.
func usedWith(svc *corev1.Service, i int) bool {
	for j := range svc.Spec.Ports {
		if p := &svc.Spec.Ports[j]; j != i && p.NodePort == svc.Spec.Ports[i].NodePort && p.Protocol == svc.Spec.Ports[i].Protocol {
			return true
		}
	}
	return false
}

func healthCheckPort(svc *corev1.Service, take func(int32) error, next func() (int32, error)) error {
	port := &svc.Spec.HealthCheckNodePort
	if *port != 0 {
		if err := take(*port); err != nil {
			return fmt.Errorf("failed to allocate requested HealthCheck NodePort %v: %w", *port, err)
		}
		return nil
	}
	n, err := next()
	if err != nil {
		return fmt.Errorf("failed to allocate a HealthCheck NodePort %v: %w", *port, err)
	}
	*port = n
	return nil
}

func invalidService(svc *corev1.Service, errs ...*field.Error) error {
	return apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Service").GroupKind(), svc.Name, errs)
}

// Why an address or a port cannot be had; upstream's wording.
var (
	errFull         = errors.New("range is full")
	errIPTaken      = errors.New("provided IP is already allocated")
	errOtherNetwork = errors.New("the provided network does not match the current range")
	errPortTaken    = errors.New("provided port is already allocated")
)
