package mutating

import (
	"context"
	"errors"
	"fmt"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"

	"github.com/periplus/periplus/apiserver/admission"
	"github.com/periplus/periplus/apiserver/admission/policy"
)

// Name is the plug-in's.
const Name = "MutatingAdmissionPolicy"

// Objects is what the plug-in reads.
type Objects interface {
	policy.Objects
	// TypesOf returns what a kind's fields are, and how lists of it merge.
	TypesOf(gvk schema.GroupVersionKind) (managedfields.TypeConverter, error)
}

type plugin struct {
	objects Objects
	index   *index
}

var _ admission.Mutator = (*plugin)(nil)

// New returns the plug-in.
func New(objects Objects) admission.Plugin {
	return &plugin{objects, policy.NewIndex(objects, kind)}
}

func (*plugin) Name() string { return Name }

// An invocation is one policy by one binding, with one parameter.
type invocation struct {
	rules   *bound
	binding *binding
	params  runtime.Object
	match   *admission.Match
}

// key tells invocations apart between the rounds of a write.
func (i *invocation) key() string {
	key := i.rules.Policy.Name + "\x00" + i.binding.Object.Name
	if m, ok := i.params.(v1.ObjectMetaAccessor); ok {
		key += "\x00" + m.GetObjectMeta().GetNamespace() + "\x00" + m.GetObjectMeta().GetName()
	}
	return key
}

// A memory is what the plug-in knows from the first round of a write.
type memory struct {
	invoked map[string]bool // with policy IfNeeded
	again   map[string]bool // those of them that are to be asked once more
	last    runtime.Object  // the object after the last mutation
}

func (m *memory) changed() {
	for key := range m.invoked {
		m.again[key] = true
		delete(m.invoked, key)
	}
}

// Admit implements admission.Mutator.
func (p *plugin) Admit(ctx context.Context, a *admission.Attributes) error {
	list := p.index.Bound()
	if len(list) == 0 || admission.Exempt(a) || a.Forms == nil || a.Object == nil {
		return nil
	}
	m, _ := a.Rounds.Memory[Name].(*memory)
	if m == nil {
		m = &memory{invoked: map[string]bool{}, again: map[string]bool{}}
		a.Rounds.Remember(Name, m)
	} else if m.last != nil && !apiequality.Semantic.DeepEqual(m.last, a.Object) {
		m.changed() // by others, since
	}
	refused, err := p.invoke(ctx, a, list, m)
	if err != nil {
		return err
	}
	if len(m.invoked)+len(m.again) > 0 {
		m.last = a.Object.DeepCopyObject()
	}
	return answer(a, refused)
}

// A failure is a policy that could not do its work.
type failure struct {
	policy, binding string
	err             error
}

func (f *failure) Error() string {
	if f.binding == "" {
		return fmt.Sprintf("policy %q denied request: %v", f.policy, f.err)
	}
	return fmt.Sprintf("policy '%s' with binding '%s' denied request: %v", f.policy, f.binding, f.err)
}

func (p *plugin) invoke(ctx context.Context, a *admission.Attributes, list []*bound, m *memory) (refused []*failure, err error) {
	var namespace *corev1.Namespace
	first := true
	for _, rules := range list {
		fail := func(binding string, err error) {
			if f := rules.Policy.Spec.FailurePolicy; f == nil || *f == admissionregistrationv1.Fail {
				refused = append(refused, &failure{rules.Policy.Name, binding, err})
			}
		}
		match, err := rules.Match(a, p.objects)
		if err != nil {
			return nil, err
		}
		if match == nil {
			continue
		}
		bindings, err := rules.In(a, p.objects)
		if err != nil {
			return nil, err
		}
		for _, b := range bindings {
			params, err := policy.Params(p.objects, a, rules.Policy.Spec.ParamKind, b.Params)
			if err != nil {
				fail(b.Object.Name, fmt.Errorf("failed to configure binding: %w", err))
				continue
			}
			if first {
				if namespace, err = policy.NamespaceOf(p.objects, a); err != nil {
					return nil, err
				}
				first = false
			}
			for _, param := range params {
				one := &invocation{rules, b, param, match}
				if a.Rounds.Second && !m.again[one.key()] {
					continue
				}
				start := time.Now()
				changed, errs := p.one(ctx, a, one, namespace)
				policy.Mutated(ctx, rules.Policy.Name, b.Object.Name, errs, start)
				for _, err := range errs {
					var status *apierrors.StatusError
					if errors.As(err, &status) {
						return nil, status
					}
					fail(b.Object.Name, err)
				}
				if changed {
					m.changed()
					a.Rounds.Wanted = true
				}
				if rules.Policy.Spec.ReinvocationPolicy == admissionregistrationv1.IfNeededReinvocationPolicy {
					m.invoked[one.key()] = true
				}
				if a.Record != nil {
					a.Record("policy "+rules.Policy.Name, start, "type", "mutating", "changed", fmt.Sprint(changed))
				}
			}
		}
	}
	return refused, nil
}

// answer is the client's error, nil if nothing was refused.
func answer(a *admission.Attributes, refused []*failure) error {
	if len(refused) == 0 {
		return nil
	}
	err := apierrors.NewForbidden(a.Resource.GroupResource(), a.Name, refused[0])
	err.ErrStatus.Message = refused[0].Error()
	err.ErrStatus.Reason, err.ErrStatus.Code = v1.StatusReasonInvalid, 422
	for _, f := range refused {
		err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, v1.StatusCause{Message: f.Error()})
	}
	return err
}
