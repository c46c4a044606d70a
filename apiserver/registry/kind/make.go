package kind

import (
	"k8s.io/apimachinery/pkg/runtime"
)

// Make returns an empty object. It is used as the New of a resource:
//
//	New: kind.Make[appsv1.Deployment],
func Make[T any, P interface {
	*T
	runtime.Object
}]() runtime.Object {
	return P(new(T))
}
