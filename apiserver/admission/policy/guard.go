package policy

import (
	"context"
	"fmt"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/request"
)

// A Guard refuses policies and bindings by which somebody would read parameters that
// he may not read: what a policy says about them, everybody gets to see.
type Guard struct {
	Objects    Objects
	Authorizer authorizer.UnconditionalAuthorizer
}

// Hooks returns the guard's part in the writes of the four kinds.
func (g Guard) Hooks() map[schema.GroupVersionResource]registry.Hooks {
	out := map[schema.GroupVersionResource]registry.Hooks{}
	for _, resource := range []string{
		"validatingadmissionpolicies", "validatingadmissionpolicybindings", "mutatingadmissionpolicies", "mutatingadmissionpolicybindings",
	} {
		out[admissionregistrationv1.SchemeGroupVersion.WithResource(resource)] = registry.Hooks{
			BeginCreate: func(ctx context.Context, obj runtime.Object, _ bool) (func(bool), error) {
				return func(bool) {}, g.check(ctx, obj, nil)
			},
			BeginUpdate: func(ctx context.Context, obj, old runtime.Object, _ bool) (func(bool), error) {
				return func(bool) {}, g.check(ctx, obj, old)
			},
		}
	}
	return out
}

// check returns the client's error.
func (g Guard) check(ctx context.Context, obj, old runtime.Object) error {
	s := request.From(ctx)
	if s == nil || s.User == nil || slices.Contains(s.User.GetGroups(), user.SystemPrivilegedGroup) {
		return nil
	}
	name, err := "paramKind", error(nil)
	if kind, isPolicy := kindOf(obj); isPolicy {
		if before, _ := kindOf(old); kind == nil || before != nil && *before == *kind {
			return nil
		}
		err = g.kind(ctx, s.User, kind)
	} else {
		name = "paramRef"
		now, before := refOf(obj), refOf(old)
		if now.ref == nil || before.policy == now.policy && apiequality.Semantic.DeepEqual(before.ref, now.ref) {
			return nil
		}
		err = g.ref(ctx, s.User, now)
	}
	if err == nil {
		return nil
	}
	return apierrors.NewInvalid(obj.GetObjectKind().GroupVersionKind().GroupKind(), obj.(metav1.Object).GetName(),
		field.ErrorList{field.Forbidden(field.NewPath("spec", name), err.Error())})
}

// kindOf returns the kind of a policy's parameters.
func kindOf(obj runtime.Object) (kind *admissionregistrationv1.ParamKind, isPolicy bool) {
	switch p := obj.(type) {
	case *admissionregistrationv1.ValidatingAdmissionPolicy:
		return p.Spec.ParamKind, true
	case *admissionregistrationv1.MutatingAdmissionPolicy:
		return p.Spec.ParamKind, true
	}
	return nil, false
}

// A reference is that of a binding, to the parameters of a policy of a kind.
type reference struct {
	policies, policy string
	ref              *admissionregistrationv1.ParamRef
}

func refOf(obj runtime.Object) reference {
	switch b := obj.(type) {
	case *admissionregistrationv1.ValidatingAdmissionPolicyBinding:
		return reference{"validatingadmissionpolicies", b.Spec.PolicyName, b.Spec.ParamRef}
	case *admissionregistrationv1.MutatingAdmissionPolicyBinding:
		return reference{"mutatingadmissionpolicies", b.Spec.PolicyName, b.Spec.ParamRef}
	}
	return reference{}
}

// kind asks whether all objects of a kind may be read.
func (g Guard) kind(ctx context.Context, u user.Info, kind *admissionregistrationv1.ParamKind) error {
	q := authorizer.AttributesRecord{User: u, Verb: "get", Namespace: "*", Name: "*"}
	_ = g.resource(kind, &q)
	allowed, err := g.ask(ctx, q)
	if err != nil {
		return err
	}
	if !allowed {
		return fmt.Errorf(`user %v must have "get" permission on all objects of the referenced paramKind (kind=%s, apiVersion=%s)`, u, kind.Kind, kind.APIVersion)
	}
	return nil
}

// ref asks whether the objects that a binding refers to may be read.
func (g Guard) ref(ctx context.Context, u user.Info, r reference) error {
	q := authorizer.AttributesRecord{User: u, Verb: "get", Namespace: r.ref.Namespace, Name: r.ref.Name, APIGroup: "*", APIVersion: "*", Resource: "*"}
	if r.ref.Name == "" {
		q.Verb = "list"
	}
	unknown := ""
	obj, err := g.Objects.Get(admissionregistrationv1.SchemeGroupVersion.WithResource(r.policies), "", r.policy)
	if err != nil {
		unknown = "get policy " + r.policy
	} else if kind, _ := kindOf(obj); kind != nil {
		if err := g.resource(kind, &q); err != nil {
			unknown = fmt.Sprintf("resolve paramKind %v", kind)
		}
	}
	allowed, err := g.ask(ctx, q)
	switch {
	case err != nil:
		return fmt.Errorf("failed to authorize request: %w", err)
	case allowed:
		return nil
	case unknown != "":
		return fmt.Errorf(`unable to %s to determine minimum required permissions and user %v does not have "%v" permission for all groups, versions and resources`, unknown, u, q.Verb)
	}
	return fmt.Errorf(`user %v does not have "%v" permission on the object referenced by paramRef`, u, q.Verb)
}

// resource puts into q what is known of the kind; of the rest all is asked for.
func (g Guard) resource(kind *admissionregistrationv1.ParamKind, q *authorizer.AttributesRecord) error {
	q.APIGroup, q.APIVersion, q.Resource = "*", "*", "*"
	gv, err := schema.ParseGroupVersion(kind.APIVersion)
	if err != nil {
		return err
	}
	q.APIGroup, q.APIVersion = gv.Group, gv.Version
	gvr, _, ok := g.Objects.ResourceOf(gv.WithKind(kind.Kind))
	if !ok {
		return fmt.Errorf("no resource serves %s", gv.WithKind(kind.Kind))
	}
	q.Resource = gvr.Resource
	return nil
}

func (g Guard) ask(ctx context.Context, q authorizer.AttributesRecord) (bool, error) {
	q.ResourceRequest = true
	d, _, err := g.Authorizer.Authorize(ctx, q)
	if d == authorizer.DecisionAllow {
		return true, nil
	}
	return false, err
}
