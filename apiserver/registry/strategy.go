package registry

import (
	"context"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// A Strategy is the rules of one kind, or of one of its subresources. Generic
// code does what holds for every kind (metadata, resource version, generation
// of names, finalizers) and calls the Strategy in this order:
//
//	create: Default, PrepareForCreate, Validate, Warnings
//	update: Default, PrepareForUpdate, ValidateUpdate, Warnings
//
// Objects given to it may be modified by Default and the Prepare functions
// only; old is never modified.
type Strategy interface {
	// Default fills what upstream's defaulting fills.
	Default(obj runtime.Object)
	// PrepareForCreate drops what a client may not set (status) and sets generation.
	PrepareForCreate(ctx context.Context, obj runtime.Object)
	// PrepareForUpdate keeps what this endpoint may not change (status, or spec
	// for /status) and raises generation when the spec changed.
	PrepareForUpdate(ctx context.Context, obj, old runtime.Object)
	// Validate and ValidateUpdate return upstream's errors. Generic metadata
	// rules (ValidateObjectMeta, ValidateObjectMetaUpdate) are checked by the caller.
	Validate(ctx context.Context, obj runtime.Object) field.ErrorList
	ValidateUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList
	// Warnings for the client; old is nil on create.
	Warnings(ctx context.Context, obj, old runtime.Object) []string
	// ValidateName checks metadata.name.
	ValidateName(name string, prefix bool) []string
	// Traits are the fixed properties of the kind.
	Traits() Traits
}

// Traits are fixed properties of a kind.
type Traits struct {
	// CreateOnUpdate lets PUT create an absent object.
	CreateOnUpdate bool
	// NoUnconditionalUpdate refuses an update without resourceVersion.
	NoUnconditionalUpdate bool
}

// Funcs is a Strategy made of typed functions; each may be nil.
// T is the pointer type: Funcs[*corev1.Pod].
type Funcs[T runtime.Object] struct {
	DefaultFunc    func(obj T)
	PrepareCreate  func(ctx context.Context, obj T)
	PrepareUpdate  func(ctx context.Context, obj, old T)
	ValidateCreate func(ctx context.Context, obj T) field.ErrorList
	// ValidateChange checks an update; it must include what ValidateCreate checks where upstream does.
	ValidateChange func(ctx context.Context, obj, old T) field.ErrorList
	// WarningsFunc gets old's zero value (nil) on create.
	WarningsFunc func(ctx context.Context, obj, old T) []string
	// Name checks metadata.name; by default a DNS subdomain.
	Name  apivalidation.ValidateNameFunc
	Fixed Traits
}

func (s Funcs[T]) Default(obj runtime.Object) {
	if s.DefaultFunc != nil {
		s.DefaultFunc(obj.(T))
	}
}

func (s Funcs[T]) PrepareForCreate(ctx context.Context, obj runtime.Object) {
	if s.PrepareCreate != nil {
		s.PrepareCreate(ctx, obj.(T))
	}
}

func (s Funcs[T]) PrepareForUpdate(ctx context.Context, obj, old runtime.Object) {
	if s.PrepareUpdate != nil {
		s.PrepareUpdate(ctx, obj.(T), old.(T))
	}
}

func (s Funcs[T]) Validate(ctx context.Context, obj runtime.Object) field.ErrorList {
	if s.ValidateCreate == nil {
		return nil
	}
	return s.ValidateCreate(ctx, obj.(T))
}

func (s Funcs[T]) ValidateUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	if s.ValidateChange == nil {
		return nil
	}
	return s.ValidateChange(ctx, obj.(T), old.(T))
}

func (s Funcs[T]) Warnings(ctx context.Context, obj, old runtime.Object) []string {
	if s.WarningsFunc == nil {
		return nil
	}
	var before T
	if old != nil {
		before = old.(T)
	}
	return s.WarningsFunc(ctx, obj.(T), before)
}

func (s Funcs[T]) ValidateName(name string, prefix bool) []string {
	if s.Name == nil {
		return apivalidation.NameIsDNSSubdomain(name, prefix)
	}
	return s.Name(name, prefix)
}

func (s Funcs[T]) Traits() Traits { return s.Fixed }
