package kind

import (
	"context"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/periplus/periplus/apiserver/registry"
)

// An Object is what the API server stores: a runtime.Object with metadata.
type Object interface {
	runtime.Object
	metav1.Object
}

// Halves gives access to the spec and the status of a kind. Both pointers point
// into obj.
type Halves[T Object, S, U any] func(obj T) (spec *S, status *U)

// Split infers the type parameters of Halves:
//
//	var halves = kind.Split(func(d *appsv1.Deployment) (*appsv1.DeploymentSpec, *appsv1.DeploymentStatus) {
//		return &d.Spec, &d.Status
//	})
func Split[T Object, S, U any](f func(obj T) (*S, *U)) Halves[T, S, U] { return f }

// Main returns the strategy of the main endpoint of a kind with generation.
func (h Halves[T, S, U]) Main() registry.Funcs[T] {
	return registry.Funcs[T]{
		PrepareCreate: func(_ context.Context, obj T) {
			h.DropStatus(obj)
			obj.SetGeneration(1)
		},
		PrepareUpdate: func(_ context.Context, obj, old T) {
			h.KeepStatus(obj, old)
			h.BumpGeneration(obj, old)
		},
	}
}

// MainWithoutGeneration is Main for the kinds whose generation is not kept.
func (h Halves[T, S, U]) MainWithoutGeneration() registry.Funcs[T] {
	return registry.Funcs[T]{
		PrepareCreate: func(_ context.Context, obj T) { h.DropStatus(obj) },
		PrepareUpdate: func(_ context.Context, obj, old T) { h.KeepStatus(obj, old) },
	}
}

// Status returns the strategy of /status. Metadata may change with it, as
// upstream's older kinds allow.
func (h Halves[T, S, U]) Status() registry.Funcs[T] {
	return registry.Funcs[T]{
		PrepareUpdate: func(_ context.Context, obj, old T) { h.KeepSpec(obj, old) },
	}
}

// StatusKeepingMeta returns the strategy of /status of the kinds whose labels,
// annotations, finalizers and owners cannot be changed there.
func (h Halves[T, S, U]) StatusKeepingMeta() registry.Funcs[T] {
	return registry.Funcs[T]{
		PrepareUpdate: func(_ context.Context, obj, old T) {
			h.KeepSpec(obj, old)
			metav1.ResetObjectMetaForStatus(obj, old)
		},
	}
}

// DropStatus empties the status.
func (h Halves[T, S, U]) DropStatus(obj T) {
	_, status := h(obj)
	var empty U
	*status = empty
}

// KeepStatus takes the status of old over into obj. What it refers to is shared.
func (h Halves[T, S, U]) KeepStatus(obj, old T) {
	_, status := h(obj)
	_, before := h(old)
	*status = *before
}

// KeepSpec takes the spec of old over into obj. What it refers to is shared.
func (h Halves[T, S, U]) KeepSpec(obj, old T) {
	spec, _ := h(obj)
	before, _ := h(old)
	*spec = *before
}

// BumpGeneration sets obj's generation to old's, plus one if the specs differ.
func (h Halves[T, S, U]) BumpGeneration(obj, old T) {
	spec, _ := h(obj)
	before, _ := h(old)
	SetGeneration(obj, old, !apiequality.Semantic.DeepEqual(spec, before))
}

// SetGeneration sets obj's generation to old's, plus one if changed.
func SetGeneration(obj, old metav1.Object, changed bool) {
	generation := old.GetGeneration()
	if changed {
		generation++
	}
	obj.SetGeneration(generation)
}
