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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/registry"
)

// A cluster IP belongs to the Service whose IPAddress object has its name
// (KEP-1880): of two servers that choose the same address only one can make it.
//
//	choose from the pool ── make the IPAddress ── store the Service
//	        ▲                    │ exists                 │ fails
//	        └────────────────────┘                        └── remove the IPAddress
//
// What a server that died in between has left behind is taken over after orphanAfter.
const (
	allocatorName = "ipallocator.k8s.io"
	orphanAfter   = time.Minute
)

var ipAddresses = networkingv1.SchemeGroupVersion.WithResource("ipaddresses")

// ipAddress is the object by which a Service owns an address.
func ipAddress(ip netip.Addr, svc *corev1.Service) *networkingv1.IPAddress {
	return &networkingv1.IPAddress{
		ObjectMeta: metav1.ObjectMeta{Name: ip.String(), Labels: map[string]string{
			networkingv1.LabelIPAddressFamily: string(family(ip)), networkingv1.LabelManagedBy: allocatorName,
		}},
		Spec: networkingv1.IPAddressSpec{ParentRef: &networkingv1.ParentReference{Resource: "services", Namespace: svc.Namespace, Name: svc.Name}},
	}
}

// claim makes the IPAddress objects of what the lease has taken. An address that
// somebody else has is replaced, unless the Service asks for just that one.
func (a *serviceAllocator) claim(ctx context.Context, svc *corev1.Service, l *lease) error {
	for i := 0; i < len(l.takenIPs); i++ {
		ip := l.takenIPs[i]
		err := a.env.Writer.Make(ctx, ipAddresses, ipAddress(ip, svc))
		var ref *networkingv1.ParentReference
		if apierrors.IsAlreadyExists(err) {
			ref = a.owner(ctx, ip)
		}
		if ref != nil && ref.Namespace == svc.Namespace && ref.Name == svc.Name {
			continue // of a try before, or of one that others make now: the name of the Service decides
		}
		if ref != nil && !holds(a.env.Objects, ref, ip) && a.abandoned(ip) {
			if err = a.env.Writer.Unmake(ctx, ipAddresses, "", ip.String()); err == nil {
				err = a.env.Writer.Make(ctx, ipAddresses, ipAddress(ip, svc))
			}
		}
		switch {
		case err == nil:
			l.claimed = append(l.claimed, ip)
			continue
		case !apierrors.IsAlreadyExists(err):
			return apierrors.NewInternalError(fmt.Errorf("failed to allocate IP %v for Service %q: %w", ip, svc.Name, err))
		case !slices.Contains(l.chosen, ip):
			return invalidService(svc, field.Invalid(field.NewPath("spec", "clusterIPs"), svc.Spec.ClusterIPs, fmt.Sprintf("failed to allocate IP %v: %v", ip, errIPTaken)))
		}
		if err := a.replace(svc, l, i); err != nil {
			return err
		}
		i-- // try that one
	}
	return nil
}

// replace chooses another address for the i-th that the lease has taken. The old
// one stays marked: it is somebody else's.
func (a *serviceAllocator) replace(svc *corev1.Service, l *lease, i int) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	old := l.takenIPs[i]
	next, err := a.ips[family(old)].next()
	if err != nil {
		l.takenIPs = slices.Delete(l.takenIPs, i, i+1)
		return apierrors.NewInternalError(fmt.Errorf("failed to allocate a serviceIP for Service %q: %w", svc.Name, err))
	}
	l.takenIPs[i] = next
	l.chosen = append(l.chosen, next)
	for j := range svc.Spec.ClusterIPs {
		if svc.Spec.ClusterIPs[j] == old.String() {
			svc.Spec.ClusterIPs[j] = next.String()
		}
	}
	svc.Spec.ClusterIP = svc.Spec.ClusterIPs[0]
	return nil
}

// owner returns for which Service an address is claimed, nil if for none.
func (a *serviceAllocator) owner(ctx context.Context, ip netip.Addr) *networkingv1.ParentReference {
	objects, ok := a.env.Objects.(registry.Awaiter)
	if !ok {
		return nil
	}
	// It is in the store, so that it soon is in the cache.
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	obj, err := objects.Await(ctx, ipAddresses, "", ip.String())
	if err != nil {
		return nil
	}
	ref := obj.(*networkingv1.IPAddress).Spec.ParentRef
	if ref == nil || ref.Group != "" || ref.Resource != "services" {
		return nil
	}
	return ref
}

// abandoned reports whether an address was claimed by an allocator, long ago.
func (a *serviceAllocator) abandoned(ip netip.Addr) bool {
	obj, err := a.env.Objects.Get(ipAddresses, "", ip.String())
	if err != nil {
		return false
	}
	address := obj.(*networkingv1.IPAddress)
	return address.Labels[networkingv1.LabelManagedBy] == allocatorName && time.Since(address.CreationTimestamp.Time) > orphanAfter
}

// holds reports whether the Service that a reference names has an address.
func holds(objects registry.Reader, ref *networkingv1.ParentReference, ip netip.Addr) bool {
	obj, err := objects.Get(version.WithResource("services"), ref.Namespace, ref.Name)
	return err == nil && slices.Contains(clusterIPsOf(obj.(*corev1.Service)), ip)
}

// disclaim removes IPAddress objects. It goes on when the request has ended.
func (a *serviceAllocator) disclaim(ctx context.Context, ips []netip.Addr) {
	if a.env.Writer == nil || len(ips) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	for _, ip := range ips {
		_ = a.env.Writer.Unmake(ctx, ipAddresses, "", ip.String()) // else it is an orphan, later
	}
}

// ClaimAddresses makes the IPAddress objects that stored Services lack: those of
// clusters in which addresses were not claimed yet.
func ClaimAddresses(ctx context.Context, objects registry.Reader, w registry.Writer) error {
	list, err := objects.List(version.WithResource("services"), "")
	if err != nil {
		return err
	}
	for _, obj := range list {
		svc := obj.(*corev1.Service)
		for _, ip := range clusterIPsOf(svc) {
			if _, err := objects.Get(ipAddresses, "", ip.String()); err == nil {
				continue
			}
			if err := w.Make(ctx, ipAddresses, ipAddress(ip, svc)); err != nil && !apierrors.IsAlreadyExists(err) {
				return err
			}
		}
	}
	return nil
}
