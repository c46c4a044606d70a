package apiserver

import (
	"cmp"
	"context"
	"net/netip"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/periplus/periplus/base"
)

// Each of several API servers keeps a lease; one that is not renewed for
// endpointLife takes its server out of the endpoints of default/kubernetes.
const (
	endpointRenew = 5 * time.Second
	endpointLife  = 15 * time.Second

	endpointLabel = "periplus.io/apiserver"
)

// keepEndpoint renews this server's lease and makes the endpoints those of all
// servers that live, until ctx ends; then this server is not among them.
func (s *Server) keepEndpoint(ctx context.Context, c kubernetes.Interface) error {
	ticker := time.NewTicker(endpointRenew)
	defer ticker.Stop()
	for {
		if err := s.renewEndpoint(ctx, c, endpointLife); err != nil && ctx.Err() == nil {
			s.config.Log.Warn("the endpoints of default/kubernetes cannot be kept", base.KeyError, err)
		}
		select {
		case <-ctx.Done():
			// The others notice that the lease is over; this saves them the wait.
			limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
			defer cancel()
			_ = s.renewEndpoint(limited, c, 0)
			return nil
		case <-ticker.C:
		}
	}
}

// leaseName is the name of a server's lease.
func leaseName(a netip.AddrPort) string {
	return "apiserver-" + strings.NewReplacer(":", "-").Replace(a.Addr().String())
}

// renewEndpoint writes this server's lease for a time (0: it is over) and the endpoints.
func (s *Server) renewEndpoint(ctx context.Context, c kubernetes.Interface, life time.Duration) error {
	leases := c.CoordinationV1().Leases(metav1.NamespaceSystem)
	name, holder, now := leaseName(s.config.Advertise), s.config.Advertise.String(), metav1.NowMicro()
	seconds := int32(life / time.Second)
	have, err := leases.Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		if life == 0 {
			return nil
		}
		_, err = leases.Create(ctx, &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceSystem, Labels: map[string]string{endpointLabel: "true"}},
			Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, RenewTime: &now},
		}, metav1.CreateOptions{})
	case err == nil && life == 0:
		err = leases.Delete(ctx, name, metav1.DeleteOptions{})
	case err == nil:
		next := have.DeepCopy()
		next.Spec.HolderIdentity, next.Spec.LeaseDurationSeconds, next.Spec.RenewTime = &holder, &seconds, &now
		_, err = leases.Update(ctx, next, metav1.UpdateOptions{})
	}
	if err != nil {
		return err
	}
	list, err := leases.List(ctx, metav1.ListOptions{LabelSelector: endpointLabel + "=true"})
	if err != nil {
		return err
	}
	living := livingServers(list.Items, time.Now())
	if len(living) == 0 {
		return nil // this one is the last and ends: the next that starts says so
	}
	const service, ns = "kubernetes", metav1.NamespaceDefault
	if err := apply(ctx, c.CoreV1().Endpoints(ns), endpoints(service, ns, living...), sameEndpoints); err != nil && !apierrors.IsConflict(err) { //nolint:staticcheck // still served, and read by old clients
		return err
	}
	if err := apply(ctx, c.DiscoveryV1().EndpointSlices(ns), endpointSlice(service, ns, living...), sameSlice); err != nil && !apierrors.IsConflict(err) {
		return err
	}
	return nil
}

// livingServers are those whose lease is not over, sorted.
func livingServers(list []coordinationv1.Lease, now time.Time) []netip.AddrPort {
	var out []netip.AddrPort
	for _, l := range list {
		if l.Spec.HolderIdentity == nil || l.Spec.RenewTime == nil || l.Spec.LeaseDurationSeconds == nil {
			continue
		}
		a, err := netip.ParseAddrPort(*l.Spec.HolderIdentity)
		if err == nil && now.Before(l.Spec.RenewTime.Add(time.Duration(*l.Spec.LeaseDurationSeconds)*time.Second)) {
			out = append(out, a)
		}
	}
	slices.SortFunc(out, func(a, b netip.AddrPort) int {
		return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Port(), b.Port()))
	})
	return slices.Compact(out)
}
