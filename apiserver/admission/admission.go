package admission

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
)

// An Operation is what a request does, as in admission.k8s.io/v1.
type Operation string

// The operations.
const (
	Create  Operation = "CREATE"
	Update  Operation = "UPDATE"
	Delete  Operation = "DELETE"
	Connect Operation = "CONNECT"
)

// Attributes describe one write.
type Attributes struct {
	Operation   Operation
	Resource    schema.GroupVersionResource
	Subresource string
	Kind        schema.GroupVersionKind
	Namespace   string
	Name        string
	Object      runtime.Object // new state, nil for deletions; mutators may modify it
	Old         runtime.Object // state before, nil for creations; shared
	Options     runtime.Object // CreateOptions, UpdateOptions, PatchOptions or DeleteOptions
	DryRun      bool
	User        user.Info
}

// A Plugin has a name, as in upstream's --enable-admission-plugins.
type Plugin interface {
	Name() string
}

// A Mutator may change Attributes.Object or refuse the write with an error.
type Mutator interface {
	Plugin
	Admit(ctx context.Context, a *Attributes) error
}

// A Validator may refuse the write with an error.
type Validator interface {
	Plugin
	Validate(ctx context.Context, a *Attributes) error
}

// A Chain is plug-ins in the order in which they are asked. Errors that are not
// API errors already are turned into 403 Forbidden by the caller.
type Chain []Plugin

// Admit asks the mutators.
func (c Chain) Admit(ctx context.Context, a *Attributes) error {
	for _, p := range c {
		if m, ok := p.(Mutator); ok {
			if err := m.Admit(ctx, a); err != nil {
				return err
			}
		}
	}
	return nil
}

// Validate asks the validators.
func (c Chain) Validate(ctx context.Context, a *Attributes) error {
	for _, p := range c {
		if v, ok := p.(Validator); ok {
			if err := v.Validate(ctx, a); err != nil {
				return err
			}
		}
	}
	return nil
}
