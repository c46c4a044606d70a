package ingress

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/periplus/periplus/gateway"
)

// Report implements gateway.Source: addresses into statuses, problems into events.
func (s *Source) Report(ctx context.Context, r *gateway.Result) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	ours := s.ours()
	for _, i := range ours {
		errs = append(errs, s.address(ctx, i, r))
		s.tell(i, r)
	}
	for uid := range s.told {
		if !slices.ContainsFunc(ours, func(i *networkingv1.Ingress) bool { return i.UID == uid }) {
			delete(s.told, uid)
		}
	}
	return errors.Join(errs...)
}

// address publishes where the Ingress can be reached; nothing while its port is taken.
func (s *Source) address(ctx context.Context, i *networkingv1.Ingress, r *gateway.Result) error {
	var want []networkingv1.IngressLoadBalancerIngress
	if r.Ports[r.Build.HTTPPort] == nil {
		for _, ip := range r.IPs() {
			want = append(want, networkingv1.IngressLoadBalancerIngress{IP: ip})
		}
	}
	if slices.EqualFunc(i.Status.LoadBalancer.Ingress, want, func(a, b networkingv1.IngressLoadBalancerIngress) bool {
		return a.IP == b.IP && a.Hostname == b.Hostname && len(a.Ports) == len(b.Ports)
	}) {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": i.UID}, "status": map[string]any{"loadBalancer": map[string]any{"ingress": want}}})
	if err != nil {
		return err
	}
	start := time.Now()
	_, err = s.cfg.Client.NetworkingV1().Ingresses(i.Namespace).Patch(ctx, i.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // the next event brings it
	}
	if err != nil {
		return fmt.Errorf("ingress %s/%s: %w", i.Namespace, i.Name, err)
	}
	r.Build.Step("addresses published", "Ingress", i, start, "addresses", strings.Join(r.IPs(), ","))
	return nil
}

// tell sends an event when the problems of an Ingress are others than before.
func (s *Source) tell(i *networkingv1.Ingress, r *gateway.Result) {
	problems := s.found[i.UID]
	for port, err := range r.Ports {
		if port == r.Build.HTTPPort || port == r.Build.HTTPSPort && len(i.Spec.TLS) > 0 {
			problems = append(problems, problem{"PortTaken", fmt.Sprintf("port %d %v", port, err)})
		}
	}
	var all []string
	for _, p := range problems {
		all = append(all, p.reason+p.message)
	}
	slices.Sort(all)
	key := strings.Join(slices.Compact(all), "\n")
	before, known := s.told[i.UID]
	if known && before == key {
		return
	}
	s.told[i.UID] = key
	if s.cfg.Events == nil {
		return
	}
	if key == "" {
		// nginx's word for it; people grep for it.
		s.cfg.Events.Event(i, corev1.EventTypeNormal, "Sync", "Scheduled for sync")
		return
	}
	sent := map[problem]bool{}
	for _, p := range problems {
		if !sent[p] {
			sent[p] = true
			s.cfg.Events.Event(i, corev1.EventTypeWarning, p.reason, p.message)
		}
	}
}
