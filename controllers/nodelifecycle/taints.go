package nodelifecycle

import (
	"context"
	"encoding/json"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/periplus/periplus/client/conditions"
)

// byCondition says which condition in which state becomes which taint.
var byCondition = []struct {
	condition corev1.NodeConditionType
	status    corev1.ConditionStatus
	key       string
}{
	{corev1.NodeReady, corev1.ConditionFalse, corev1.TaintNodeNotReady},
	{corev1.NodeReady, corev1.ConditionUnknown, corev1.TaintNodeUnreachable},
	{corev1.NodeMemoryPressure, corev1.ConditionTrue, corev1.TaintNodeMemoryPressure},
	{corev1.NodeDiskPressure, corev1.ConditionTrue, corev1.TaintNodeDiskPressure},
	{corev1.NodeNetworkUnavailable, corev1.ConditionTrue, corev1.TaintNodeNetworkUnavailable},
	{corev1.NodePIDPressure, corev1.ConditionTrue, corev1.TaintNodePIDPressure},
}

// owned says whether a taint is this controller's to add and remove.
func owned(t corev1.Taint) bool {
	switch t.Effect {
	case corev1.TaintEffectNoExecute:
		return t.Key == corev1.TaintNodeNotReady || t.Key == corev1.TaintNodeUnreachable
	case corev1.TaintEffectNoSchedule:
		if t.Key == corev1.TaintNodeUnschedulable {
			return true
		}
		for _, c := range byCondition {
			if c.key == t.Key {
				return true
			}
		}
	}
	return false
}

// wanted returns the taints that a node's conditions call for. execute allows the
// NoExecute one.
func wanted(node *corev1.Node, execute bool) []corev1.Taint {
	var out []corev1.Taint
	for _, c := range byCondition {
		if have := conditions.Node(&node.Status, c.condition); have == nil || have.Status != c.status {
			continue
		}
		out = append(out, corev1.Taint{Key: c.key, Effect: corev1.TaintEffectNoSchedule})
		if c.condition == corev1.NodeReady && execute {
			out = append(out, corev1.Taint{Key: c.key, Effect: corev1.TaintEffectNoExecute})
		}
	}
	if node.Spec.Unschedulable {
		out = append(out, corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule})
	}
	return out
}

// taint writes the node's taints if they differ. It returns how long a NoExecute
// taint still has to wait for its turn.
func (r *reconciler) taint(ctx context.Context, node *corev1.Node, now time.Time) (time.Duration, error) {
	execute, wait := r.mayExecute(node, now)
	want := wanted(node, execute)
	stamp := metav1.NewTime(now)

	taints := []corev1.Taint{} // an empty list, not null, clears the field
	changed := false
	for _, have := range node.Spec.Taints {
		switch {
		case !owned(have), contains(want, have):
			taints = append(taints, have)
		default:
			changed = true
		}
	}
	for _, w := range want {
		if !contains(taints, w) {
			w.TimeAdded = &stamp
			taints = append(taints, w)
			changed = true
		}
	}
	if !changed {
		return wait, nil
	}
	meta := map[string]any{"uid": node.UID}
	if node.ResourceVersion != "" {
		meta["resourceVersion"] = node.ResourceVersion // the list is replaced as a whole
	}
	patch, err := json.Marshal(map[string]any{"metadata": meta, "spec": map[string]any{"taints": taints}})
	if err != nil {
		return 0, err
	}
	_, err = r.Client.CoreV1().Nodes().Patch(ctx, node.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	return wait, ignoreMissing(err)
}

func contains(list []corev1.Taint, t corev1.Taint) bool {
	for i := range list {
		if list[i].MatchTaint(&t) {
			return true
		}
	}
	return false
}
