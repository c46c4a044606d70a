package scheduler

import (
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
)

// Comparisons of parts of objects that the scheduler looks at, without reflection:
// node heartbeats arrive all the time and must cost next to nothing.

func sameMap(a, b map[string]string) bool { return maps.Equal(a, b) }

func sameResourceList(a, b v1.ResourceList) bool {
	if len(a) != len(b) {
		return false
	}
	for name, q := range a {
		o, ok := b[name]
		if !ok || q.Cmp(o) != 0 {
			return false
		}
	}
	return true
}

func sameTaints(a, b []v1.Taint) bool {
	return slices.EqualFunc(a, b, func(x, y v1.Taint) bool {
		return x.Key == y.Key && x.Value == y.Value && x.Effect == y.Effect
	})
}

func sameTolerations(a, b []v1.Toleration) bool {
	return slices.EqualFunc(a, b, func(x, y v1.Toleration) bool {
		return x.Key == y.Key && x.Value == y.Value && x.Effect == y.Effect && x.Operator == y.Operator
	})
}

func sameConditions(a, b []v1.NodeCondition) bool {
	return slices.EqualFunc(a, b, func(x, y v1.NodeCondition) bool {
		return x.Type == y.Type && x.Status == y.Status
	})
}

func sameImages(a, b []v1.ContainerImage) bool {
	return slices.EqualFunc(a, b, func(x, y v1.ContainerImage) bool {
		return x.SizeBytes == y.SizeBytes && slices.Equal(x.Names, y.Names)
	})
}

// sameForScheduling reports whether no decision can depend on which version of a node is used.
func sameForScheduling(a, b *v1.Node) bool {
	return nodeActions(a, b)&^(UpdateNodeCondition|UpdateNodeAnnotation) == 0 &&
		a.UID == b.UID && sameImages(a.Status.Images, b.Status.Images)
}
