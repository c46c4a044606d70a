package lint

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/periplus/periplus/insight"
)

// nameRules: labels, selectors and references must fit together.
func nameRules() []Rule {
	return []Rule{
		onWorkload("labels", Advice, "Without them nobody can tell what belongs together: dashboards, policies and selectors live from labels.", func(w workload) *Finding {
			l := w.object.GetLabels()
			if l["app.kubernetes.io/name"] != "" || l["app"] != "" || l["k8s-app"] != "" || l["run"] != "" {
				return nil
			}
			return &Finding{What: "has no label app.kubernetes.io/name", Fix: fmt.Sprintf("metadata:\n  labels:\n    app.kubernetes.io/name: %s\n", w.object.GetName())}
		}),
		onWorkload("selector-mismatch", Error, "The API server refuses it: the workload would not find the pods that it makes.", func(w workload) *Finding {
			var sel *metav1.LabelSelector
			switch o := w.object.(type) {
			case *appsv1.Deployment:
				sel = o.Spec.Selector
			case *appsv1.StatefulSet:
				sel = o.Spec.Selector
			case *appsv1.DaemonSet:
				sel = o.Spec.Selector
			case *appsv1.ReplicaSet:
				sel = o.Spec.Selector
			default:
				return nil
			}
			s, err := metav1.LabelSelectorAsSelector(sel)
			if err != nil || sel == nil || s.Empty() {
				return &Finding{What: "has no selector", Fix: "spec:\n  selector:\n    matchLabels:\n" + setLines(w.template.Labels, "      ")}
			}
			if s.Matches(labels.Set(w.template.Labels)) {
				return nil
			}
			return &Finding{What: fmt.Sprintf("selects %s, but its pods have %s", metav1.FormatLabelSelector(sel), orNone(labels.Set(w.template.Labels).String())), Fix: "spec:\n  template:\n    metadata:\n      labels:\n" + labelLines(sel, "        ")}
		}),
		on("service-selector", Error, "Nobody answers at such a Service.", func(s *Set, svc *corev1.Service) []Finding {
			if len(svc.Spec.Selector) == 0 || svc.Spec.Type == corev1.ServiceTypeExternalName {
				return nil
			}
			sel, near := labels.SelectorFromSet(svc.Spec.Selector), map[string]string(nil)
			made := false
			for _, o := range s.Objects {
				t := template(o)
				if t == nil || o.GetNamespace() != svc.Namespace {
					continue
				}
				made = true
				if sel.Matches(labels.Set(t.Labels)) {
					return nil
				}
				for k := range svc.Spec.Selector {
					if _, ok := t.Labels[k]; ok {
						near = t.Labels
					}
				}
			}
			if !made && !s.whole {
				return nil // the workloads are in other files
			}
			f := Finding{What: fmt.Sprintf("selects %s, which no pod here has", labels.Set(svc.Spec.Selector))}
			if near != nil {
				f.Fix = "spec:\n  selector:\n" + setLines(only(near, svc.Spec.Selector), "    ")
			}
			return []Finding{f}
		}),
		on("service-target-port", Error, "The Service sends packets where nobody listens.", func(s *Set, svc *corev1.Service) []Finding {
			var out []Finding
			for _, sp := range svc.Spec.Ports {
				var have []string
				found := false
				for _, o := range s.Objects {
					t := template(o)
					if t == nil || o.GetNamespace() != svc.Namespace || len(svc.Spec.Selector) == 0 || !labels.SelectorFromSet(svc.Spec.Selector).Matches(labels.Set(t.Labels)) {
						continue
					}
					if _, declared := insight.ContainerPort(&corev1.Pod{Spec: t.Spec}, sp.TargetPort, sp.Protocol); declared || sp.TargetPort.StrVal == "" {
						found = true
					}
					for _, c := range t.Spec.Containers {
						for _, p := range c.Ports {
							have = append(have, p.Name)
						}
					}
				}
				if found || sp.TargetPort.StrVal == "" || len(svc.Spec.Selector) == 0 || !s.fronts(svc) {
					continue
				}
				out = append(out, Finding{Part: fmt.Sprintf("port %d", sp.Port), What: fmt.Sprintf("leads to port %q, which its pods do not have: %s", sp.TargetPort.StrVal, orNone(strings.Join(have, ", "))), Fix: fmt.Sprintf("spec:\n  ports:\n  - port: %d\n    targetPort: %s\n", sp.Port, strings.Join(slices.Compact(have), " "))})
			}
			return out
		}),
		on("duplicate", Error, "Of two objects with the same name the later one wins.", func(s *Set, o insight.Object) []Finding {
			if s.whole {
				return nil
			}
			for _, other := range s.Objects {
				if other == o {
					return nil
				}
				if insight.RefOf(other) == insight.RefOf(o) {
					return []Finding{{What: "is there twice: also in " + s.places[other].String()}}
				}
			}
			return nil
		}),
		onWorkload("missing-reference", Error, "The pod cannot start without what it refers to.", func(w workload) *Finding {
			if !w.set.whole {
				return nil // it may be made by something else
			}
			for _, v := range w.template.Spec.Volumes {
				kind, name := "", ""
				switch {
				case v.ConfigMap != nil && (v.ConfigMap.Optional == nil || !*v.ConfigMap.Optional):
					kind, name = "ConfigMap", v.ConfigMap.Name
				case v.Secret != nil && (v.Secret.Optional == nil || !*v.Secret.Optional):
					kind, name = "Secret", v.Secret.SecretName
				case v.PersistentVolumeClaim != nil:
					kind, name = "PersistentVolumeClaim", v.PersistentVolumeClaim.ClaimName
				default:
					continue
				}
				if w.set.knows(kind) && !w.set.has(insight.Ref{Kind: kind, Namespace: w.object.GetNamespace(), Name: name}) {
					return &Finding{Part: "volume " + v.Name, What: fmt.Sprintf("needs %s %s, which does not exist", kind, name)}
				}
			}
			return nil
		}),
	}
}

func (s *Set) has(r insight.Ref) bool {
	return slices.ContainsFunc(s.Objects, func(o insight.Object) bool { return insight.RefOf(o) == r })
}

// knows reports that objects of the kind were read at all.
func (s *Set) knows(kind string) bool {
	return slices.ContainsFunc(s.Objects, func(o insight.Object) bool { return insight.KindOf(o) == kind })
}

// fronts reports that a Service selects pods of the set.
func (s *Set) fronts(svc *corev1.Service) bool {
	return slices.ContainsFunc(s.Objects, func(o insight.Object) bool {
		t := template(o)
		return t != nil && o.GetNamespace() == svc.Namespace && labels.SelectorFromSet(svc.Spec.Selector).Matches(labels.Set(t.Labels))
	})
}

func (s *Set) scaled(kind, name string) bool {
	return slices.ContainsFunc(s.Objects, func(o insight.Object) bool {
		ref, ok := scaleTarget(o)
		return ok && ref.Kind == kind && ref.Name == name
	})
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

func labelLines(s *metav1.LabelSelector, by string) string {
	if s == nil {
		return ""
	}
	return setLines(s.MatchLabels, by)
}

func setLines(m map[string]string, by string) string {
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(m)) {
		fmt.Fprintf(&b, "%s%s: %s\n", by, k, m[k])
	}
	return b.String()
}

func only(have, keys map[string]string) map[string]string {
	out := map[string]string{}
	for k := range keys {
		if v, ok := have[k]; ok {
			out[k] = v
		}
	}
	return out
}
