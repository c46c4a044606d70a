package servicelb

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	corelisters "k8s.io/client-go/listers/core/v1"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"

	"github.com/periplus/periplus/client/conditions"
	"github.com/periplus/periplus/controllers"
)

// Class is the loadBalancerClass that names this implementation; none does too.
const Class = "periplus.io/node"

// Controller declares the controller. Its keys are Services.
func Controller() controllers.Controller {
	core := corev1.SchemeGroupVersion
	return controllers.Controller{
		Name:    "service-lb-controller",
		Reads:   []schema.GroupVersionResource{core.WithResource("services"), core.WithResource("nodes"), discoveryv1.SchemeGroupVersion.WithResource("endpointslices")},
		Writes:  []schema.GroupVersionResource{core.WithResource("services")},
		Workers: 1, New: build,
	}
}

type reconciler struct {
	*controllers.Setup
	services corelisters.ServiceLister
	nodes    corelisters.NodeLister
	slices   discoverylisters.EndpointSliceLister
}

func build(s *controllers.Setup) (controllers.Reconciler, error) {
	core, endpoints := s.Informers.Core().V1(), s.Informers.Discovery().V1().EndpointSlices()
	r := &reconciler{Setup: s, services: core.Services().Lister(), nodes: core.Nodes().Lister(), slices: endpoints.Lister()}
	s.Watch(core.Services().Informer(), controllers.On(func(old, now *corev1.Service) {
		// Its ports may be what another one waits for.
		if old != nil && ours(old) && (now == nil || !ours(now) || !slices.Equal(portsOf(old), portsOf(now))) {
			r.enqueueAll()
		}
		if now != nil && (ours(now) || len(now.Status.LoadBalancer.Ingress) > 0) {
			s.Queue.Add(controllers.KeyOf(now))
		}
	}))
	s.Watch(core.Nodes().Informer(), controllers.On(func(old, now *corev1.Node) {
		if old == nil || now == nil || eligible(old) != eligible(now) || !slices.Equal(old.Status.Addresses, now.Status.Addresses) {
			r.enqueueAll()
		}
	}))
	s.Watch(endpoints.Informer(), controllers.On(func(old, now *discoveryv1.EndpointSlice) {
		for _, e := range []*discoveryv1.EndpointSlice{old, now} {
			if e == nil {
				continue
			}
			svc, err := r.services.Services(e.Namespace).Get(e.Labels[discoveryv1.LabelServiceName])
			if err == nil && ours(svc) && svc.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal {
				s.Queue.Add(controllers.KeyOf(svc))
				return
			}
		}
	}))
	return r, nil
}

// ours says whether a Service is to have an address from here.
func ours(s *corev1.Service) bool {
	return s.Spec.Type == corev1.ServiceTypeLoadBalancer && s.DeletionTimestamp == nil &&
		(s.Spec.LoadBalancerClass == nil || *s.Spec.LoadBalancerClass == Class)
}

func (r *reconciler) enqueueAll() {
	list, err := r.services.List(labels.Everything())
	if err != nil {
		return
	}
	for _, s := range list {
		if ours(s) {
			r.Queue.Add(controllers.KeyOf(s))
		}
	}
}

// Reconcile writes the addresses of a Service into its status.
func (r *reconciler) Reconcile(ctx context.Context, key controllers.Key) (time.Duration, error) {
	svc, err := r.services.Services(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	var want []corev1.LoadBalancerIngress
	switch {
	case ours(svc):
		if why := r.conflict(svc); why != "" {
			r.Recorder.Eventf(svc, corev1.EventTypeWarning, "SyncLoadBalancerFailed", "Error syncing load balancer: %s", why)
			break
		}
		if want, err = r.ingress(svc); err != nil {
			return 0, err
		}
	case svc.Spec.Type == corev1.ServiceTypeLoadBalancer:
		return 0, nil // somebody else's
	}
	if equality.Semantic.DeepEqual(want, svc.Status.LoadBalancer.Ingress) {
		return 0, nil
	}
	start := time.Now()
	changed := svc.DeepCopy()
	changed.Status.LoadBalancer.Ingress = want
	if _, err := r.Client.CoreV1().Services(svc.Namespace).UpdateStatus(ctx, changed, metav1.UpdateOptions{}); err != nil {
		if apierrors.IsNotFound(err) {
			return 0, nil
		}
		return 0, err
	}
	r.Span(fmt.Sprintf("load balancer: %d addresses", len(want)), "Service", svc, start)
	if len(want) > 0 && len(svc.Status.LoadBalancer.Ingress) == 0 {
		r.Recorder.Event(svc, corev1.EventTypeNormal, "EnsuredLoadBalancer", "Ensured load balancer")
	}
	return 0, nil
}

// portsOf lists "TCP/80", sorted.
func portsOf(s *corev1.Service) []string {
	var out []string
	for _, p := range s.Spec.Ports {
		out = append(out, fmt.Sprintf("%s/%d", p.Protocol, p.Port))
	}
	slices.Sort(out)
	return out
}

// conflict says who else has a port that the Service wants, or "".
func (r *reconciler) conflict(svc *corev1.Service) string {
	for _, p := range svc.Spec.Ports {
		if p.Protocol == corev1.ProtocolTCP && slices.Contains(r.Options.ReservedPorts, p.Port) {
			return fmt.Sprintf("port %d/%s is used by the cluster itself on every node", p.Port, p.Protocol)
		}
	}
	list, err := r.services.List(labels.Everything())
	if err != nil {
		return ""
	}
	own := portsOf(svc)
	for _, o := range list {
		if o.UID == svc.UID || !ours(o) || !older(o, svc) {
			continue
		}
		for _, p := range portsOf(o) {
			if slices.Contains(own, p) {
				protocol, port, _ := strings.Cut(p, "/")
				return fmt.Sprintf("port %s/%s of the nodes is taken by service %s/%s", port, protocol, o.Namespace, o.Name)
			}
		}
	}
	return ""
}

func older(a, b *corev1.Service) bool {
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return a.Namespace+"/"+a.Name < b.Namespace+"/"+b.Name
}

// eligible says whether a node takes traffic from outside.
func eligible(n *corev1.Node) bool {
	if _, excluded := n.Labels[corev1.LabelNodeExcludeBalancers]; excluded || n.DeletionTimestamp != nil {
		return false
	}
	return conditions.NodeReady(n)
}

// ingress lists the addresses of the Service, sorted.
func (r *reconciler) ingress(svc *corev1.Service) ([]corev1.LoadBalancerIngress, error) {
	nodes, err := r.nodes.List(labels.Everything())
	if err != nil {
		return nil, err
	}
	nodes = slices.DeleteFunc(slices.Clone(nodes), func(n *corev1.Node) bool { return !eligible(n) })
	if svc.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal {
		with, err := r.nodesWithEndpoints(svc)
		if err != nil {
			return nil, err
		}
		nodes = slices.DeleteFunc(nodes, func(n *corev1.Node) bool { return !with[n.Name] })
	}
	addresses := map[string]bool{}
	for _, kind := range []corev1.NodeAddressType{corev1.NodeExternalIP, corev1.NodeInternalIP} {
		for _, n := range nodes {
			for _, a := range n.Status.Addresses {
				if a.Type == kind && serves(svc, a.Address) {
					addresses[a.Address] = true
				}
			}
		}
		if len(addresses) > 0 {
			break // addresses that the outside knows are better than inner ones
		}
	}
	var out []corev1.LoadBalancerIngress
	mode := corev1.LoadBalancerIPModeVIP
	for _, a := range slices.Sorted(maps.Keys(addresses)) {
		out = append(out, corev1.LoadBalancerIngress{IP: a, IPMode: &mode})
	}
	return out, nil
}

// serves says whether an address is of one of the Service's families.
func serves(svc *corev1.Service, address string) bool {
	if len(svc.Spec.IPFamilies) == 0 {
		return true
	}
	family := corev1.IPv4Protocol
	if strings.Contains(address, ":") {
		family = corev1.IPv6Protocol
	}
	return slices.Contains(svc.Spec.IPFamilies, family)
}

func (r *reconciler) nodesWithEndpoints(svc *corev1.Service) (map[string]bool, error) {
	list, err := r.slices.EndpointSlices(svc.Namespace).List(labels.SelectorFromSet(labels.Set{discoveryv1.LabelServiceName: svc.Name}))
	if err != nil {
		return nil, err
	}
	out := map[string]bool{}
	for _, s := range list {
		for _, e := range s.Endpoints {
			if e.NodeName != nil && (e.Conditions.Ready == nil || *e.Conditions.Ready) {
				out[*e.NodeName] = true
			}
		}
	}
	return out, nil
}
