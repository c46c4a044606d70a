package admission

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/periplus/periplus/apiserver/measure"
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

	// Request is the version in which the client wrote, when it is not the stored one
	// that Resource and Kind name.
	Request schema.GroupVersion
	// Forms turns the objects into other versions; nil where there is no need for it.
	Forms Forms
	// Authorizer answers expressions that ask what somebody may do; nil: nobody is asked.
	Authorizer authorizer.UnconditionalAuthorizer
	// Record, if not nil, notes a step of the object's journey that began at start, with
	// attributes: name, value, name, value.
	Record func(step string, start time.Time, attrs ...string)
	// Rounds is about repeated mutation.
	Rounds Rounds
}

// Forms turns objects of a resource into the versions in which it is served. Of
// subresources with a kind of their own (scale) the form is that kind's.
type Forms interface {
	// Versions lists the group versions in which the resource is served.
	Versions() []schema.GroupVersion
	// Kind is the kind of what Encode returns.
	Kind(gv schema.GroupVersion, subresource string) schema.GroupVersionKind
	// Encode returns an object as JSON in a version.
	Encode(obj runtime.Object, gv schema.GroupVersion, subresource string) ([]byte, error)
	// Decode reads JSON in a version into obj, with defaults, and without what the version does not know.
	Decode(data []byte, gv schema.GroupVersion, subresource string, obj runtime.Object) error
}

// Rounds tells of the rounds of mutation: when a mutator asks for it, all are asked
// once more, as upstream reinvokes plug-ins after a webhook has changed the object.
type Rounds struct {
	Second bool // this is the second round
	Wanted bool // a mutator wants one
	// Memory is what plug-ins remember of the first round, by their names.
	Memory map[string]any
}

// Remember keeps what a plug-in wants to know in the second round.
func (r *Rounds) Remember(plugin string, memory any) {
	if r.Memory == nil {
		r.Memory = map[string]any{}
	}
	r.Memory[plugin] = memory
}

// RequestVersion is the version in which the client wrote.
func (a *Attributes) RequestVersion() schema.GroupVersion {
	if a.Request.Empty() {
		return a.Resource.GroupVersion()
	}
	return a.Request
}

// KindIn is the kind of the write's object in a version.
func (a *Attributes) KindIn(gv schema.GroupVersion) schema.GroupVersionKind {
	if a.Forms == nil {
		return gv.WithKind(a.Kind.Kind)
	}
	return a.Forms.Kind(gv, a.Subresource)
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

// Admit asks the mutators, all of them a second time if one of them wants it.
func (c Chain) Admit(ctx context.Context, a *Attributes) error {
	return measured(ctx, a, measure.Admit, func() error {
		if err := c.round(ctx, a); err != nil || !a.Rounds.Wanted {
			return err
		}
		a.Rounds.Second = true
		return c.round(ctx, a)
	})
}

func (c Chain) round(ctx context.Context, a *Attributes) error {
	w := watch(ctx, a, measure.Admit)
	for i, p := range c {
		if m, ok := p.(Mutator); ok {
			err := m.Admit(ctx, a)
			w.asked(i, p, err)
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// Validate asks the validators.
func (c Chain) Validate(ctx context.Context, a *Attributes) error {
	return measured(ctx, a, measure.Validate, func() error {
		w := watch(ctx, a, measure.Validate)
		for i, p := range c {
			if v, ok := p.(Validator); ok {
				err := v.Validate(ctx, a)
				w.asked(i, p, err)
				if err != nil {
					return err
				}
			}
		}
		return nil
	})
}
