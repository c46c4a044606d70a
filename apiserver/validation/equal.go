package validation

import (
	"bytes"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// Equal reports semantic equality: nil and empty are the same, quantities are
// compared by value.
func Equal(a, b any) bool {
	return sameMessage(a, b) || equality.Semantic.DeepEqual(a, b)
}

// message is implemented by the types of the API, by way of pointers.
type message interface {
	Size() int
	MarshalToSizedBuffer([]byte) (int, error)
}

// sameMessage reports whether two objects have the same protobuf form, so that they are
// equal. It is many times as fast as walking through both by reflection, which remains
// for what is not the same, and for types that are not known here.
func sameMessage(a, b any) bool {
	switch x := a.(type) {
	case corev1.PodSpec:
		if y, ok := b.(corev1.PodSpec); ok {
			return sameBytes(&x, &y)
		}
	case corev1.PodTemplateSpec:
		if y, ok := b.(corev1.PodTemplateSpec); ok {
			return sameBytes(&x, &y)
		}
	case appsv1.DeploymentSpec:
		if y, ok := b.(appsv1.DeploymentSpec); ok {
			return sameBytes(&x, &y)
		}
	case *corev1.PodSpec:
		if y, ok := b.(*corev1.PodSpec); ok && x != nil && y != nil {
			return x == y || sameBytes(x, y)
		}
	}
	return false
}

// scratch are buffers for two messages.
var scratch = sync.Pool{New: func() any { return new([]byte) }}

func sameBytes(a, b message) bool {
	n := a.Size()
	if n != b.Size() {
		return false
	}
	p := scratch.Get().(*[]byte)
	defer scratch.Put(p)
	if cap(*p) < 2*n {
		*p = make([]byte, 2*n)
	}
	both := (*p)[:2*n]
	if _, err := a.MarshalToSizedBuffer(both[:n]); err != nil {
		return false
	}
	if _, err := b.MarshalToSizedBuffer(both[n:]); err != nil {
		return false
	}
	return bytes.Equal(both[:n], both[n:])
}
