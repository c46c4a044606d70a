package policy_test

import (
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/periplus/periplus/apiserver/admission/admissiontest"
	"github.com/periplus/periplus/apiserver/admission/policy"
	"github.com/periplus/periplus/apiserver/request"
)

// objects are a few, and the kind ConfigMap.
type objects struct{ admissiontest.Objects }

func (objects) Version(schema.GroupVersionResource) int64 { return 1 }

func (objects) ResourceOf(gvk schema.GroupVersionKind) (schema.GroupVersionResource, bool, bool) {
	return gvk.GroupVersion().WithResource("configmaps"), true, gvk.Kind == "ConfigMap"
}

// TestGuard: who makes a policy or binds it must be able to read its parameters.
func TestGuard(t *testing.T) {
	t.Parallel()
	p := func(kind string) *admissionregistrationv1.ValidatingAdmissionPolicy {
		out := &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
		if kind != "" {
			out.Spec.ParamKind = &admissionregistrationv1.ParamKind{APIVersion: "v1", Kind: kind}
		}
		return out
	}
	binding := func(policy string, ref *admissionregistrationv1.ParamRef) *admissionregistrationv1.MutatingAdmissionPolicyBinding {
		return &admissionregistrationv1.MutatingAdmissionPolicyBinding{Spec: admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: policy, ParamRef: ref}}
	}
	mutating := &admissionregistrationv1.MutatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
		ParamKind: &admissionregistrationv1.ParamKind{APIVersion: "v1", Kind: "ConfigMap"}}}
	one := &admissionregistrationv1.ParamRef{Name: "m", Namespace: "ns"}
	some := &admissionregistrationv1.ParamRef{Selector: &metav1.LabelSelector{}}
	alice, admin := &user.DefaultInfo{Name: "alice"}, &user.DefaultInfo{Name: "admin", Groups: []string{user.SystemPrivilegedGroup}}
	for name, c := range map[string]struct {
		who      user.Info
		obj, old runtime.Object
		may      []string
		want     string
	}{
		"without parameters":   {who: alice, obj: p("")},
		"all maps":             {who: alice, obj: p("ConfigMap"), may: []string{"get /configmaps/ */*"}},
		"one map only":         {who: alice, obj: p("ConfigMap"), may: []string{"get /configmaps/ ns/m"}, want: `spec.paramKind: Forbidden: user &{alice  [] map[]} must have "get" permission on all objects of the referenced paramKind (kind=ConfigMap, apiVersion=v1)`},
		"unknown kind":         {who: alice, obj: p("Unknown"), may: []string{"get /configmaps/ */*"}, want: "kind=Unknown"},
		"unknown kind, all":    {who: alice, obj: p("Unknown"), may: []string{"get /*/ */*"}},
		"same kind":            {who: alice, obj: p("ConfigMap"), old: p("ConfigMap")},
		"another kind":         {who: alice, obj: p("ConfigMap"), old: p(""), want: "must have"},
		"master":               {who: admin, obj: p("ConfigMap")},
		"bound":                {who: alice, obj: binding("p", one), may: []string{"get /configmaps/ ns/m"}},
		"bound, not readable":  {who: alice, obj: binding("p", one), want: `spec.paramRef: Forbidden: user &{alice  [] map[]} does not have "get" permission on the object referenced by paramRef`},
		"bound by labels":      {who: alice, obj: binding("p", some), want: `does not have "list" permission`},
		"bound by labels, may": {who: alice, obj: binding("p", some), may: []string{"list /configmaps/ /"}},
		"unknown policy":       {who: alice, obj: binding("q", one), may: []string{"get /configmaps/ ns/m"}, want: `unable to get policy q to determine minimum required permissions`},
		"unknown policy, all":  {who: alice, obj: binding("q", one), may: []string{"get */*/ ns/m"}},
		"same reference":       {who: alice, obj: binding("p", one), old: binding("p", one.DeepCopy())},
		"another policy":       {who: alice, obj: binding("p", one), old: binding("q", one), want: "does not have"},
	} {
		g := policy.Guard{Objects: objects{admissiontest.Objects{"mutatingadmissionpolicies": {mutating}}}, Authorizer: admissiontest.Allowed(c.may)}
		ctx := request.With(t.Context(), &request.State{User: c.who})
		var err error
		for _, h := range g.Hooks() {
			if c.old == nil {
				_, err = h.BeginCreate(ctx, c.obj, false)
			} else {
				_, err = h.BeginUpdate(ctx, c.obj, c.old, false)
			}
			break
		}
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v\nwant %s", name, err, c.want)
		}
	}
}
