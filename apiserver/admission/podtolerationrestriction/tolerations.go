package podtolerationrestriction

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
)

// merge returns both lists without tolerations that another one covers.
func merge(first, second []corev1.Toleration) []corev1.Toleration {
	all := slices.Concat(first, second)
	var out []corev1.Toleration
	for i := range all {
		t := &all[i]
		byEarlier := func(o corev1.Toleration) bool { return covers(&o, t) }
		byLater := func(o corev1.Toleration) bool {
			return !apiequality.Semantic.DeepEqual(&o, t) && covers(&o, t) // of equal ones the first stays
		}
		if !slices.ContainsFunc(out, byEarlier) && !slices.ContainsFunc(all[i+1:], byLater) {
			out = append(out, *t)
		}
	}
	return out
}

// allowed reports whether every toleration is covered by the list; an empty one allows all.
func allowed(tolerations, list []corev1.Toleration) bool {
	if len(list) == 0 {
		return true
	}
	return !slices.ContainsFunc(tolerations, func(t corev1.Toleration) bool {
		return !slices.ContainsFunc(list, func(w corev1.Toleration) bool { return covers(&w, &t) })
	})
}

// covers reports whether a tolerates all that b does.
func covers(a, b *corev1.Toleration) bool {
	if apiequality.Semantic.DeepEqual(a, b) {
		return true
	}
	if a.Key != b.Key && (a.Key != "" || a.Operator != corev1.TolerationOpExists) || a.Effect != b.Effect && a.Effect != "" {
		return false
	}
	if a.Effect == corev1.TaintEffectNoExecute && a.TolerationSeconds != nil && (b.TolerationSeconds == nil || *b.TolerationSeconds > *a.TolerationSeconds) {
		return false
	}
	switch a.Operator {
	case corev1.TolerationOpExists:
		return true
	case corev1.TolerationOpEqual, "":
		return b.Operator == corev1.TolerationOpEqual && b.Value == a.Value
	}
	return false
}
