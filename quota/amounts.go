package quota

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Add returns the sum of two lists.
func Add(a, b corev1.ResourceList) corev1.ResourceList {
	out := corev1.ResourceList{}
	for _, list := range []corev1.ResourceList{a, b} {
		for name, q := range list {
			sum := out[name]
			sum.Add(q)
			out[name] = sum
		}
	}
	return out
}

// Growth returns by how much after is more than before. What has not grown is left out.
func Growth(after, before corev1.ResourceList) corev1.ResourceList {
	out := corev1.ResourceList{}
	for name, q := range after {
		more := q.DeepCopy()
		more.Sub(before[name])
		if more.Sign() > 0 {
			out[name] = more
		}
	}
	return out
}

// Only returns the amounts that have one of the names.
func Only(list corev1.ResourceList, names []corev1.ResourceName) corev1.ResourceList {
	out := corev1.ResourceList{}
	for name, q := range list {
		if slices.Contains(names, name) {
			out[name] = q
		}
	}
	return out
}

// Names returns the names of a list, sorted.
func Names(list corev1.ResourceList) []corev1.ResourceName {
	return slices.Sorted(maps.Keys(list))
}

// Exceeded returns the names of which used is more than hard allows.
func Exceeded(used, hard corev1.ResourceList) (names []corev1.ResourceName) {
	for _, name := range Names(used) {
		if limit, ok := hard[name]; ok {
			if q := used[name]; q.Cmp(limit) > 0 {
				names = append(names, name)
			}
		}
	}
	return names
}

// Same reports whether two lists hold the same amounts.
func Same(a, b corev1.ResourceList) bool {
	return maps.EqualFunc(a, b, func(x, y resource.Quantity) bool { return x.Cmp(y) == 0 })
}

// String prints a list as refusals show it: cpu=1,memory=2Gi.
func String(list corev1.ResourceList) string {
	parts := make([]string, 0, len(list))
	for _, name := range Names(list) {
		q := list[name]
		parts = append(parts, fmt.Sprintf("%s=%s", name, q.String()))
	}
	return strings.Join(parts, ",")
}
