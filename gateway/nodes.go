package gateway

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

var everything = labels.Everything()

// nodeReady reports whether a node can answer; one that was never heard of cannot.
func nodeReady(n *corev1.Node) bool {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func sameAddresses(a, b *corev1.Node) bool {
	return nodeReady(a) == nodeReady(b) && slices.Equal(a.Status.Addresses, b.Status.Addresses)
}

func sortAddresses(a []Address) {
	slices.SortFunc(a, func(x, y Address) int {
		return cmp.Or(cmp.Compare(x.Type, y.Type), cmp.Compare(x.Value, y.Value))
	})
}
