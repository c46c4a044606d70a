package gateway

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/periplus/periplus/client/conditions"
)

var everything = labels.Everything()

func sameAddresses(a, b *corev1.Node) bool {
	return conditions.NodeReady(a) == conditions.NodeReady(b) && slices.Equal(a.Status.Addresses, b.Status.Addresses)
}

func sortAddresses(a []Address) {
	slices.SortFunc(a, func(x, y Address) int {
		return cmp.Or(cmp.Compare(x.Type, y.Type), cmp.Compare(x.Value, y.Value))
	})
}
