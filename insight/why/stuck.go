package why

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/periplus/periplus/client/conditions"
	"github.com/periplus/periplus/insight"
)

// stuckRules: an object is deleted and does not go.
func stuckRules() []Rule {
	return []Rule{
		on("claim-in-use", "the claim goes when no pod uses it", func(s *insight.Snapshot, c *corev1.PersistentVolumeClaim) []insight.Finding {
			if c.DeletionTimestamp == nil || !slices.Contains(c.Finalizers, "kubernetes.io/pvc-protection") {
				return nil
			}
			var users []string
			for _, p := range insight.All[*corev1.Pod](s, c.Namespace) {
				if slices.Contains(insight.PodClaims(p), c.Name) && !ended(p) {
					users = append(users, p.Name)
				}
			}
			if len(users) == 0 {
				return nil
			}
			return one(&insight.Finding{Part: "deletion", What: fmt.Sprintf("the claim is being deleted since %s and goes when no pod uses it: %s", s.Age(c.DeletionTimestamp.Time), strings.Join(users, ", ")), Evidence: []string{"metadata: finalizer kubernetes.io/pvc-protection"},
				Mend: []insight.Mend{insight.Do("ends its users", insight.Kubectl(c.Namespace, "delete pod %s", strings.Join(users, " ")))}})
		}),
		on("volume-in-use-by-claim", "the volume goes when its claim does", func(s *insight.Snapshot, v *corev1.PersistentVolume) []insight.Finding {
			if v.DeletionTimestamp == nil || !slices.Contains(v.Finalizers, "kubernetes.io/pv-protection") || v.Spec.ClaimRef == nil || v.Status.Phase != corev1.VolumeBound {
				return nil
			}
			return one(&insight.Finding{Part: "deletion", What: fmt.Sprintf("the volume is being deleted since %s and goes when claim %s/%s does", s.Age(v.DeletionTimestamp.Time), v.Spec.ClaimRef.Namespace, v.Spec.ClaimRef.Name), Evidence: []string{"metadata: finalizer kubernetes.io/pv-protection"},
				Mend: []insight.Mend{insight.Do("deletes the claim, and the data with it", insight.Kubectl(v.Spec.ClaimRef.Namespace, "delete pvc %s", v.Spec.ClaimRef.Name))}})
		}),
		on("namespace-stuck", "something in the namespace keeps it", func(s *insight.Snapshot, n *corev1.Namespace) []insight.Finding {
			if n.DeletionTimestamp == nil {
				return nil
			}
			var out []insight.Finding
			for _, c := range n.Status.Conditions {
				if c.Status != corev1.ConditionTrue {
					continue
				}
				f := insight.Finding{Part: "deletion", Evidence: []string{fmt.Sprintf("status: %s: %s", c.Type, c.Message)}}
				switch c.Type {
				case corev1.NamespaceFinalizersRemaining:
					f.What = "objects of the namespace wait for their finalizers: " + c.Message
					f.Why = "The controllers that should remove them do not run any more, or cannot do it."
					f.Mend = []insight.Mend{insight.Do("which objects? (then remove the finalizer, if what it stands for is done)", insight.Kubectl(n.Name, "api-resources --verbs=list --namespaced -o name | xargs -n1 peri kubectl get -n %s --ignore-not-found -o jsonpath='{range .items[?(@.metadata.finalizers)]}{.kind}/{.metadata.name} {.metadata.finalizers}{\"\\n\"}{end}'", n.Name))}
				case corev1.NamespaceContentRemaining:
					f.Level = insight.Sign
					f.What = "objects of the namespace are still there: " + c.Message
				case corev1.NamespaceDeletionDiscoveryFailure, corev1.NamespaceDeletionGVParsingFailure:
					f.What = "the API server cannot say what kinds there are, so that nobody knows what to delete: " + c.Message
					f.Why = "An aggregated API does not answer."
					f.Mend = []insight.Mend{insight.Do("which one?", "peri kubectl get apiservices | grep False")}
				case corev1.NamespaceDeletionContentFailure:
					f.What = "objects of the namespace cannot be deleted: " + c.Message
				default:
					continue
				}
				out = append(out, f)
			}
			if len(out) == 0 && len(n.Spec.Finalizers) > 0 && s.Now.Sub(n.DeletionTimestamp.Time) > patience {
				out = append(out, insight.Finding{Level: insight.Sign, Part: "deletion", What: fmt.Sprintf("the namespace is being deleted since %s, and its controller does not say why it stays", s.Age(n.DeletionTimestamp.Time)), Evidence: []string{fmt.Sprintf("spec: finalizers %v", n.Spec.Finalizers)}})
			}
			return out
		}),
		on("pod-stuck-node", "a pod on a lost node cannot be seen to end", func(s *insight.Snapshot, p *corev1.Pod) []insight.Finding {
			n, ok := insight.Get[*corev1.Node](s, "", p.Spec.NodeName)
			if p.DeletionTimestamp == nil || !ok || s.Now.Before(p.DeletionTimestamp.Time) {
				return nil
			}
			c := conditions.Node(&n.Status, corev1.NodeReady)
			if c == nil || c.Status == corev1.ConditionTrue {
				return nil
			}
			return one(&insight.Finding{Part: "deletion", What: fmt.Sprintf("the pod is deleted, but node %s does not answer: nobody can say that it has ended", p.Spec.NodeName), Evidence: []string{fmt.Sprintf("status: node %s: Ready is %s since %s", n.Name, c.Status, s.Age(c.LastTransitionTime.Time))},
				Mend: []insight.Mend{insight.Do("if the machine is certainly off: lets the pod go", insight.Kubectl(p.Namespace, "delete pod %s --force --grace-period=0", p.Name))}})
		}),
		on("pod-stuck", "a pod does not end in its grace period", func(s *insight.Snapshot, p *corev1.Pod) []insight.Finding {
			if p.DeletionTimestamp == nil || len(p.Finalizers) > 0 || s.Now.Sub(p.DeletionTimestamp.Time) < patience {
				return nil
			}
			grace := int64(30)
			if p.DeletionGracePeriodSeconds != nil {
				grace = *p.DeletionGracePeriodSeconds
			}
			return one(&insight.Finding{Level: insight.Sign, Part: "deletion", What: fmt.Sprintf("the pod should have ended %s ago", s.Age(p.DeletionTimestamp.Time)), Evidence: append([]string{fmt.Sprintf("metadata: grace period %ds", grace)}, eventLines(s, p, "FailedKillPod", "Killing", "FailedPreStopHook")...)})
		}),
		on("finalizer", "a finalizer keeps the object", func(s *insight.Snapshot, o insight.Object) []insight.Finding {
			t := o.GetDeletionTimestamp()
			if t == nil || len(o.GetFinalizers()) == 0 || s.Now.Sub(t.Time) < 10*time.Second {
				return nil
			}
			ref := insight.RefOf(o)
			f := &insight.Finding{Level: insight.Sign, Part: "deletion", What: fmt.Sprintf("the object is being deleted since %s and waits for its finalizers: %s", s.Age(t.Time), strings.Join(o.GetFinalizers(), ", ")), Why: "The controller that has set a finalizer removes it when its own work is done; if that controller is gone, nobody does."}
			f.Mend = []insight.Mend{insight.Do("only if what it stands for is done, or of no interest any more", insight.Kubectl(ref.Namespace, `patch %s --type=merge -p '{"metadata":{"finalizers":null}}'`, ref))}
			if slices.Contains(o.GetFinalizers(), metav1.FinalizerDeleteDependents) {
				f.Why = "It goes when all that it owns is gone (foreground deletion)."
			}
			return one(f)
		}),
	}
}

func matchesSelector(s metav1.LabelSelector, set map[string]string) bool {
	sel, err := metav1.LabelSelectorAsSelector(&s)
	return err == nil && sel.Matches(labels.Set(set))
}
