package mutating

import (
	"context"
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured/unstructuredscheme"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	upstream "k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"github.com/periplus/periplus/apiserver/admission"
	"github.com/periplus/periplus/apiserver/admission/policy"
)

// one lets a policy change the object: every mutation sees what those before it have
// made. Of one that fails the others go on, as upstream; the write is refused after.
func (p *plugin) one(ctx context.Context, a *admission.Attributes, i *invocation, namespace *corev1.Namespace) (changed bool, errs []error) {
	program := i.rules.Program()
	if program.err != nil {
		return false, []error{program.err}
	}
	ctx = program.CreateContext(ctx) // lets expressions see the policy's variables
	if program.HasConditions() {
		attributes, err := policy.Versioned(a, i.match)
		if err != nil {
			return false, []error{apierrors.NewInternalError(err)}
		}
		switch applies, err := program.Applies(ctx, attributes, i.params, a.Authorizer); {
		case err != nil:
			return false, []error{err}
		case !applies:
			return false, nil
		}
	}
	types, err := p.objects.TypesOf(i.match.Kind)
	if err != nil {
		return false, []error{apierrors.NewInternalError(err)}
	}
	before := a.Object.DeepCopyObject()
	for _, mutation := range program.mutations {
		// In the version that the rules name, with what was changed so far, and defaults.
		attributes, err := policy.Versioned(a, i.match)
		if err != nil {
			return false, []error{apierrors.NewInternalError(err)}
		}
		patched, err := mutation.Patch(ctx, patch.Request{
			MatchedResource: i.match.Resource, VersionedAttributes: attributes, ObjectInterfaces: interfaces{},
			OptionalVariables: cel.OptionalVariableBindings{VersionedParams: i.params, Authorizer: a.Authorizer},
			Namespace:         cel.CreateNamespaceObject(namespace), TypeConverter: types,
		}, celconfig.RuntimeCELCostBudget)
		if err == nil {
			err = replace(a, i.match.Resource.GroupVersion(), patched)
		}
		if err != nil {
			errs = append(errs, err)
		}
	}
	return !apiequality.Semantic.DeepEqual(before, a.Object), errs
}

// replace makes the object what the patched one says, which may be of another version.
func replace(a *admission.Attributes, gv schema.GroupVersion, patched runtime.Object) error {
	data, err := json.Marshal(patched)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	if err := a.Forms.Decode(data, gv, a.Subresource, a.Object); err != nil {
		return apierrors.NewInternalError(err)
	}
	return nil
}

// interfaces serve the library of patches, which only meets untyped objects here.
type interfaces struct{ upstream.ObjectInterfaces }

func (interfaces) GetObjectCreater() runtime.ObjectCreater {
	return unstructuredscheme.NewUnstructuredCreator()
}

func (interfaces) GetObjectTyper() runtime.ObjectTyper {
	return unstructuredscheme.NewUnstructuredObjectTyper()
}
