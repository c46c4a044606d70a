package daemonset

import (
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"

	"github.com/periplus/periplus/controllers"
)

// verdict says whether a set's pod is to be on a node: new, and once it is there.
type verdict struct{ run, stay bool }

func sameForPods(a, b *corev1.Node) bool {
	return a.Spec.Unschedulable == b.Spec.Unschedulable && maps.Equal(a.Labels, b.Labels) && apiequality.Semantic.DeepEqual(a.Spec.Taints, b.Spec.Taints)
}

// fits judges a node by what the scheduler would: selector, affinity and taints.
func fits(ds *appsv1.DaemonSet, node *corev1.Node) verdict {
	spec := &ds.Spec.Template.Spec
	if spec.NodeName != "" && spec.NodeName != node.Name {
		return verdict{}
	}
	probe := &corev1.Pod{Spec: corev1.PodSpec{NodeSelector: spec.NodeSelector, Affinity: spec.Affinity}}
	if ok, err := nodeaffinity.GetRequiredNodeAffinity(probe).Match(node); err != nil || !ok {
		return verdict{}
	}
	all := append(slices.Clone(spec.Tolerations), tolerations(spec)...)
	v := verdict{run: true, stay: true}
	for i := range node.Spec.Taints {
		t := &node.Spec.Taints[i]
		if t.Effect == corev1.TaintEffectPreferNoSchedule || slices.ContainsFunc(all, func(x corev1.Toleration) bool {
			return x.ToleratesTaint(klog.Background(), t, true)
		}) {
			continue
		}
		v.run = false
		if t.Effect == corev1.TaintEffectNoExecute {
			v.stay = false
		}
	}
	return v
}

// tolerations are what every pod of a DaemonSet gets: it is there before the node
// is well, and stays when it is not.
func tolerations(spec *corev1.PodSpec) []corev1.Toleration {
	exists := func(key string, effect corev1.TaintEffect) corev1.Toleration {
		return corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: effect}
	}
	out := []corev1.Toleration{
		exists(corev1.TaintNodeNotReady, corev1.TaintEffectNoExecute),
		exists(corev1.TaintNodeUnreachable, corev1.TaintEffectNoExecute),
		exists(corev1.TaintNodeDiskPressure, corev1.TaintEffectNoSchedule),
		exists(corev1.TaintNodeMemoryPressure, corev1.TaintEffectNoSchedule),
		exists(corev1.TaintNodePIDPressure, corev1.TaintEffectNoSchedule),
		exists(corev1.TaintNodeUnschedulable, corev1.TaintEffectNoSchedule),
	}
	if spec.HostNetwork {
		out = append(out, exists(corev1.TaintNodeNetworkUnavailable, corev1.TaintEffectNoSchedule))
	}
	return out
}

// newPod makes the pod for a node.
func newPod(ds *appsv1.DaemonSet, hash, node string) *corev1.Pod {
	pod := controllers.PodFromTemplate(&ds.Spec.Template, ds, metav1.NewControllerRef(ds, kind))
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	pod.Labels[appsv1.DefaultDaemonSetUniqueLabelKey] = hash
	if generation := ds.Annotations[appsv1.DeprecatedTemplateGeneration]; generation != "" {
		pod.Labels["pod-template-generation"] = generation
	}
	for _, t := range tolerations(&pod.Spec) {
		if !slices.ContainsFunc(pod.Spec.Tolerations, func(have corev1.Toleration) bool { return have.MatchToleration(&t) }) {
			pod.Spec.Tolerations = append(pod.Spec.Tolerations, t)
		}
	}
	pin(&pod.Spec, node)
	return pod
}

// pin lets a pod go to one node only, in place of the template's required affinity,
// which was judged already.
func pin(spec *corev1.PodSpec, node string) {
	if spec.Affinity == nil {
		spec.Affinity = &corev1.Affinity{}
	}
	if spec.Affinity.NodeAffinity == nil {
		spec.Affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchFields: []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}},
	}}}
}

// nodeOf is the node that a pod is on, or is meant for.
func nodeOf(pod *corev1.Pod) string {
	if pod.Spec.NodeName != "" {
		return pod.Spec.NodeName
	}
	if a := pod.Spec.Affinity; a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		for _, t := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
			for _, f := range t.MatchFields {
				if f.Key == metav1.ObjectNameField && f.Operator == corev1.NodeSelectorOpIn && len(f.Values) == 1 {
					return f.Values[0]
				}
			}
		}
	}
	return ""
}
