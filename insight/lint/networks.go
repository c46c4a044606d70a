package lint

import (
	"fmt"
	"slices"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/periplus/periplus/insight"
)

// networkRules: the way from outside to a pod, and autoscalers.
func networkRules() []Rule {
	return []Rule{
		on("ingress-backend", Error, "The rule leads nowhere: its requests get 503.", func(s *Set, i *networkingv1.Ingress) []Finding {
			var out []Finding
			for _, r := range i.Spec.Rules {
				if r.HTTP == nil {
					continue
				}
				for _, p := range r.HTTP.Paths {
					b := p.Backend.Service
					if b == nil || !s.whole && !s.knows("Service") {
						continue
					}
					at := slices.IndexFunc(s.Objects, func(o insight.Object) bool {
						return insight.RefOf(o) == insight.Ref{Kind: "Service", Namespace: i.Namespace, Name: b.Name}
					})
					part := fmt.Sprintf("rule %s%s", r.Host, p.Path)
					if at < 0 {
						out = append(out, Finding{Part: part, What: fmt.Sprintf("leads to Service %s, which is not here", b.Name)})
						continue
					}
					svc := s.Objects[at].(*corev1.Service)
					if !slices.ContainsFunc(svc.Spec.Ports, func(sp corev1.ServicePort) bool {
						return b.Port.Name != "" && sp.Name == b.Port.Name || b.Port.Name == "" && sp.Port == b.Port.Number
					}) && len(svc.Spec.Ports) > 0 {
						out = append(out, Finding{Part: part, What: fmt.Sprintf("leads to a port that Service %s does not have", b.Name), Fix: fmt.Sprintf("backend:\n  service:\n    name: %s\n    port:\n      number: %d\n", b.Name, svc.Spec.Ports[0].Port)})
					}
				}
			}
			return out
		}),
		on("ingress-tls", Advice, "Passwords and cookies go over the network in the clear.", func(_ *Set, i *networkingv1.Ingress) []Finding {
			if len(i.Spec.TLS) > 0 || len(i.Spec.Rules) == 0 {
				return nil
			}
			return []Finding{{What: "has no TLS", Fix: fmt.Sprintf("spec:\n  tls:\n  - hosts: [%s]\n    secretName: %s-tls\n", i.Spec.Rules[0].Host, i.Name)}}
		}),
		on("scaler-replicas", Warning, "Every apply sets the number of replicas back to what is written there.", func(s *Set, d *appsv1.Deployment) []Finding {
			if s.whole || d.Spec.Replicas == nil || !s.scaled("Deployment", d.Name) {
				return nil
			}
			return []Finding{{What: "states replicas and is scaled by a HorizontalPodAutoscaler", Fix: "spec:\n  replicas: null\n"}}
		}),
		on("scaler-requests", Error, "A percentage of nothing: the autoscaler never scales.", func(s *Set, h *autoscalingv2.HorizontalPodAutoscaler) []Finding {
			for _, d := range all[*appsv1.Deployment](s) {
				if d.Namespace != h.Namespace || h.Spec.ScaleTargetRef.Kind != "Deployment" || d.Name != h.Spec.ScaleTargetRef.Name {
					continue
				}
				for _, m := range h.Spec.Metrics {
					if m.Resource == nil || m.Resource.Target.Type != autoscalingv2.UtilizationMetricType {
						continue
					}
					for _, c := range d.Spec.Template.Spec.Containers {
						_, request := c.Resources.Requests[m.Resource.Name]
						_, limit := c.Resources.Limits[m.Resource.Name]
						if !request && !limit {
							return []Finding{{What: fmt.Sprintf("wants a percentage of the requested %s, but container %s of Deployment %s requests none", m.Resource.Name, c.Name, d.Name)}}
						}
					}
				}
			}
			return nil
		}),
	}
}

func scaleTarget(o insight.Object) (autoscalingv2.CrossVersionObjectReference, bool) {
	if h, ok := o.(*autoscalingv2.HorizontalPodAutoscaler); ok {
		return h.Spec.ScaleTargetRef, true
	}
	return autoscalingv2.CrossVersionObjectReference{}, false
}
