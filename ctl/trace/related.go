package trace

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	"k8s.io/component-helpers/storage/ephemeral"

	"github.com/periplus/periplus/journey"
)

// A part is a journey that belongs to the target, or some steps of it.
type part struct {
	trace  journey.TraceID
	wanted func(s *journey.Span) bool // nil: all
}

// related collects what belongs to a target.
type related struct {
	ctx    context.Context //nolint:containedctx // of one collection
	client kubernetes.Interface
	target *target
	parts  []part
	fronts map[string]bool // Services
	pods   []*corev1.Pod   // of the namespace
}

func (r *related) all(obj metav1.Object) { r.some(obj, nil) }

func (r *related) some(obj metav1.Object, wanted func(s *journey.Span) bool) {
	r.parts = append(r.parts, part{journey.TraceOf(obj), wanted})
}

// partsOf finds whose journeys belong to the target's timeline.
//
//	workload  its pods, their claims, the Services in front, the Ingresses in front of those
//	pod       the same, without the steps of other pods
//	service   its slices, how pods came into them, the Ingresses in front
//	ingress   the Services behind, how pods came into them
//	claim     its volume, and what pods that use it do with it
func partsOf(ctx context.Context, c kubernetes.Interface, t *target) ([]part, error) {
	r := &related{ctx: ctx, client: c, target: t, fronts: map[string]bool{}}
	own := func(*journey.Span) bool { return true }
	if t.kind == "Pod" {
		uid := t.object.GetUID()
		own = func(s *journey.Span) bool { return s.Kind != "Pod" || s.UID == uid }
	}
	r.some(t.object, own)
	list, err := c.CoreV1().Pods(t.object.GetNamespace()).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for i := range list.Items {
		r.pods = append(r.pods, &list.Items[i])
	}
	if t.kind == "PersistentVolumeClaim" {
		r.claim(t.object)
		return r.parts, nil
	}
	for _, p := range r.pods {
		if t.pods != nil && t.pods.Matches(labels.Set(p.Labels)) {
			r.all(p)
			if err := r.claimsOf(p); err != nil {
				return nil, err
			}
		}
	}
	if p, ok := t.object.(*corev1.Pod); ok {
		if err := r.claimsOf(p); err != nil {
			return nil, err
		}
	}
	if err := r.policies(); err != nil {
		return nil, err
	}
	if err := r.services(); err != nil {
		return nil, err
	}
	err = r.edges()
	return r.parts, err
}

// policies adds the NetworkPolicies that the pods are under.
func (r *related) policies() error {
	if len(r.target.template) == 0 {
		return nil
	}
	list, err := r.client.NetworkingV1().NetworkPolicies(r.target.object.GetNamespace()).List(r.ctx, metav1.ListOptions{})
	if err != nil && !apierrors.IsForbidden(err) {
		return err
	}
	for i := range list.Items {
		p := &list.Items[i]
		if s, err := metav1.LabelSelectorAsSelector(&p.Spec.PodSelector); err == nil && s.Matches(r.target.template) {
			r.all(p)
		}
	}
	return nil
}

// services adds those in front of the pods, or behind an Ingress, with their slices.
func (r *related) services() error {
	ns := r.target.object.GetNamespace()
	list, err := r.client.CoreV1().Services(ns).List(r.ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range list.Items {
		s := &list.Items[i]
		if !r.target.fronts(s) {
			continue
		}
		r.fronts[s.Name] = true
		r.all(s)
		if r.target.template != nil || len(s.Spec.Selector) == 0 {
			continue // the pods' journeys are there as a whole, or there are none
		}
		for _, p := range r.pods {
			if labels.SelectorFromSet(s.Spec.Selector).Matches(labels.Set(p.Labels)) {
				r.some(p, behind(s.Name, p))
			}
		}
	}
	if len(r.fronts) == 0 {
		return nil
	}
	found, err := r.client.DiscoveryV1().EndpointSlices(ns).List(r.ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range found.Items {
		if s := &found.Items[i]; r.fronts[s.Labels[discoveryv1.LabelServiceName]] {
			service := s.Labels[discoveryv1.LabelServiceName]
			r.some(s, func(x *journey.Span) bool { return x.Kind == "EndpointSlice" || ofService(x, s.Namespace, service) })
		}
	}
	return nil
}

// behind picks the steps of a pod's journey that are about its place behind a Service.
func behind(service string, p *corev1.Pod) func(s *journey.Span) bool {
	return func(s *journey.Span) bool {
		if ofService(s, p.Namespace, service) {
			return true
		}
		return s.Kind == "Pod" && s.UID == p.UID && (s.Step == journey.StepReady || strings.HasPrefix(s.Step, journey.FirstAnswer))
	}
}

func ofService(s *journey.Span, namespace, service string) bool {
	return s.Attrs[journey.AttrService] == service && s.Namespace == namespace || s.Attrs[journey.AttrService] == namespace+"/"+service
}

// edges adds the Ingresses and HTTPRoutes that lead to the Services.
func (r *related) edges() error {
	if r.target.kind == "Ingress" || r.target.kind == "HTTPRoute" || len(r.fronts) == 0 {
		return nil
	}
	ns := r.target.object.GetNamespace()
	leads := func(backends []string) bool {
		return slices.ContainsFunc(backends, func(name string) bool { return r.fronts[name] })
	}
	list, err := r.client.NetworkingV1().Ingresses(ns).List(r.ctx, metav1.ListOptions{})
	if err != nil && !apierrors.IsForbidden(err) {
		return err
	}
	if err == nil {
		for i := range list.Items {
			if leads(backendsOf(&list.Items[i])) {
				r.all(&list.Items[i])
			}
		}
	}
	found, err := httpRoutes(r.ctx, r.client, ns)
	if err != nil {
		return nil //nolint:nilerr // there is no Gateway API here, or it may not be read
	}
	for _, o := range found {
		if leads(o.backends()) {
			r.all(o)
		}
	}
	return nil
}

// claimsOf adds the claims that a pod uses.
func (r *related) claimsOf(p *corev1.Pod) error {
	for _, name := range claimNames(p) {
		claim, err := r.client.CoreV1().PersistentVolumeClaims(p.Namespace).Get(r.ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
			continue
		}
		if err != nil {
			return err
		}
		r.all(claim)
	}
	return nil
}

func claimNames(p *corev1.Pod) []string {
	var out []string
	for i := range p.Spec.Volumes {
		switch v := &p.Spec.Volumes[i]; {
		case v.PersistentVolumeClaim != nil:
			out = append(out, v.PersistentVolumeClaim.ClaimName)
		case v.Ephemeral != nil:
			out = append(out, ephemeral.VolumeClaimName(p, v))
		}
	}
	return out
}

// claim adds what pods do with a claim.
func (r *related) claim(claim metav1.Object) {
	name := claim.GetName()
	for _, p := range r.pods {
		if !slices.Contains(claimNames(p), name) {
			continue
		}
		r.some(p, func(s *journey.Span) bool {
			if s.Kind != "Pod" || s.UID != p.UID {
				return false
			}
			switch of := s.Attrs[journey.AttrClaim]; {
			case of != "":
				return of == name
			case s.Component == "scheduler", strings.HasPrefix(s.Step, journey.StepBound), strings.HasPrefix(s.Step, "volume"), s.Step == "seen by the kubelet":
				return true
			}
			return false
		})
	}
}
