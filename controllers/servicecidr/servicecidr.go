package servicecidr

import (
	"context"
	"net/netip"
	"slices"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	networkinglisters "k8s.io/client-go/listers/networking/v1"

	"github.com/periplus/periplus/controllers"
)

const (
	finalizer = "networking.k8s.io/service-cidr-finalizer"
	allocator = "ipallocator.k8s.io"

	// grace is how long a range stays after its deletion has been asked for: until then
	// every API server has seen that it is to go, and gives no more addresses of it.
	grace = 10 * time.Second
)

// Controller declares what looks after ranges.
func Controller() controllers.Controller {
	ranges := networkingv1.SchemeGroupVersion.WithResource("servicecidrs")
	return controllers.Controller{
		Name: "service-cidr-controller", Workers: 1,
		Reads:  []schema.GroupVersionResource{ranges, networkingv1.SchemeGroupVersion.WithResource("ipaddresses")},
		Writes: []schema.GroupVersionResource{ranges}, New: build,
	}
}

type reconciler struct {
	*controllers.Setup
	ranges    networkinglisters.ServiceCIDRLister
	addresses networkinglisters.IPAddressLister
}

func build(s *controllers.Setup) (controllers.Reconciler, error) {
	ranges, addresses := s.Informers.Networking().V1().ServiceCIDRs(), s.Informers.Networking().V1().IPAddresses()
	r := &reconciler{s, ranges.Lister(), addresses.Lister()}
	s.Watch(ranges.Informer(), controllers.On(func(old, now *networkingv1.ServiceCIDR) {
		if now != nil {
			s.Queue.Add(controllers.KeyOf(now))
		}
		if now == nil || old == nil {
			r.deletedOnes() // this one may hold, or have held, what they wait for
		}
	}))
	s.Watch(addresses.Informer(), controllers.On(func(_, now *networkingv1.IPAddress) {
		if now == nil {
			r.deletedOnes()
		}
	}))
	return r, nil
}

// deletedOnes looks again at ranges that wait for their addresses to go.
func (r *reconciler) deletedOnes() {
	list, err := r.ranges.List(labels.Everything())
	if err != nil {
		return
	}
	for _, c := range list {
		if c.DeletionTimestamp != nil {
			r.Queue.Add(controllers.KeyOf(c))
		}
	}
}

// Reconcile lets a range go, or says what it is.
func (r *reconciler) Reconcile(ctx context.Context, key controllers.Key) (time.Duration, error) {
	c, err := r.ranges.Get(key.Name)
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	wait, err := r.reconcile(ctx, c)
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	return wait, err
}

func (r *reconciler) reconcile(ctx context.Context, c *networkingv1.ServiceCIDR) (time.Duration, error) {
	has := slices.Contains(c.Finalizers, finalizer)
	switch {
	case c.DeletionTimestamp == nil && !has:
		out := c.DeepCopy()
		out.Finalizers = append(out.Finalizers, finalizer)
		_, err := r.Client.NetworkingV1().ServiceCIDRs().Update(ctx, out, metav1.UpdateOptions{})
		return 0, err // the change brings it here again
	case c.DeletionTimestamp == nil:
		return 0, r.say(ctx, c, metav1.Condition{Status: metav1.ConditionTrue, Message: "Kubernetes Service CIDR is ready"})
	case !has:
		return 0, nil
	}
	used, err := r.used(c)
	if err != nil {
		return 0, err
	}
	if used {
		return 0, r.say(ctx, c, metav1.Condition{
			Status: metav1.ConditionFalse, Reason: networkingv1.ServiceCIDRReasonTerminating,
			Message: "There are still IPAddresses referencing the ServiceCIDR, please remove them or create a new ServiceCIDR",
		})
	}
	if left := grace - time.Since(c.DeletionTimestamp.Time); left > 0 {
		return left, nil
	}
	out := c.DeepCopy()
	out.Finalizers = slices.DeleteFunc(out.Finalizers, func(f string) bool { return f == finalizer })
	_, err = r.Client.NetworkingV1().ServiceCIDRs().Update(ctx, out, metav1.UpdateOptions{})
	return 0, err
}

// say sets the Ready condition unless it says the same already.
func (r *reconciler) say(ctx context.Context, c *networkingv1.ServiceCIDR, condition metav1.Condition) error {
	condition.Type = networkingv1.ServiceCIDRConditionReady
	out := c.DeepCopy()
	if !meta.SetStatusCondition(&out.Status.Conditions, condition) {
		return nil
	}
	_, err := r.Client.NetworkingV1().ServiceCIDRs().UpdateStatus(ctx, out, metav1.UpdateOptions{})
	return err
}

// used reports whether an address that was given would be of no range without c.
func (r *reconciler) used(c *networkingv1.ServiceCIDR) (bool, error) {
	list, err := r.ranges.List(labels.Everything())
	if err != nil {
		return false, err
	}
	var others []netip.Prefix
	for _, o := range list {
		if o.Name != c.Name && o.DeletionTimestamp == nil {
			others = append(others, prefixes(o)...)
		}
	}
	for _, text := range r.Options.ServiceCIDRs { // of the configuration
		if p, err := netip.ParsePrefix(text); err == nil {
			others = append(others, p)
		}
	}
	own := prefixes(c)
	given, err := r.addresses.List(labels.SelectorFromSet(labels.Set{networkingv1.LabelManagedBy: allocator}))
	if err != nil {
		return false, err
	}
	for _, a := range given {
		if ip, err := netip.ParseAddr(a.Name); err == nil && contains(own, ip) && !contains(others, ip) {
			return true, nil
		}
	}
	return false, nil
}

func prefixes(c *networkingv1.ServiceCIDR) (out []netip.Prefix) {
	for _, text := range c.Spec.CIDRs {
		if p, err := netip.ParsePrefix(text); err == nil {
			out = append(out, p)
		}
	}
	return out
}

func contains(list []netip.Prefix, ip netip.Addr) bool {
	return slices.ContainsFunc(list, func(p netip.Prefix) bool { return p.Contains(ip) })
}
