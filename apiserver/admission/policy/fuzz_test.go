package policy_test

import (
	"encoding/json"
	"testing"

	celgo "github.com/google/cel-go/cel"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	upstream "k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/periplus/periplus/apiserver/admission/admissiontest"
	"github.com/periplus/periplus/apiserver/admission/policy"
)

// FuzzExpressions: whatever a policy says, it comes to a result or to an error, within its budget.
func FuzzExpressions(f *testing.F) {
	f.Add("size(object.data)", "variables.v > 1", `{"data":{"a":"b"}}`)
	f.Add("object.spec.containers.map(c, c.image)", "variables.v.all(i, i.matches('^a.*$'))", `{"spec":{"containers":[{"image":"a/b"}]}}`)
	f.Add("quantity(object.q)", "variables.v.isGreaterThan(quantity('1Ki'))", `{"q":"2Ki"}`)
	f.Add("url(object.u).getHost()", "ip.isCanonical(variables.v) || cidr('10.0.0.0/8').containsIP(variables.v)", `{"u":"http://10.1.2.3/x"}`)
	f.Add("authorizer.group('').resource('pods').check('get')", "variables.v.allowed() || oldObject == null", `{}`)
	f.Add("object.l.sort()", "optional.of(variables.v[?0]).hasValue() && 'abc'.format([1]) == ''", `{"l":[3,1,2]}`)
	f.Add("timestamp(object.t)", "variables.v + duration('1h') < timestamp('2030-01-01T00:00:00Z')", `{"t":"2020-01-01T00:00:00Z"}`)
	gvk := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Ship"}
	gvr := gvk.GroupVersion().WithResource("ships")
	f.Fuzz(func(t *testing.T, variable, expression, object string) {
		u := &unstructured.Unstructured{}
		if json.Unmarshal([]byte(object), &u.Object) != nil || u.Object == nil || len(variable)+len(expression) > 2000 {
			return
		}
		frame, err := policy.NewFrame("p", nil, []admissionregistrationv1.Variable{{Name: "v", Expression: variable}},
			[]admissionregistrationv1.MatchCondition{{Name: "c", Expression: expression}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		attributes := &upstream.VersionedAttributes{
			Attributes:    upstream.NewAttributesRecord(u, nil, gvk, "ns", "n", gvr, "", upstream.Create, nil, false, &user.DefaultInfo{Name: "u"}),
			VersionedKind: gvk, VersionedObject: upstream.NewLazyObject(u),
		}
		who := admissiontest.Allowed{}
		ctx := frame.CreateContext(t.Context())
		_, _ = frame.Applies(ctx, attributes, nil, who)
		e := frame.CompileCondition([]cel.ExpressionAccessor{&policy.Expression{Text: expression, Kind: celgo.BoolType}}, frame.Declared, environment.StoredExpressions)
		question := cel.CreateAdmissionRequest(attributes.Attributes, metav1.GroupVersionResource(gvr), metav1.GroupVersionKind(gvk))
		if _, left, err := e.ForInput(ctx, attributes, question, cel.OptionalVariableBindings{Authorizer: who}, nil, celconfig.RuntimeCELCostBudget); err == nil && left > celconfig.RuntimeCELCostBudget {
			t.Errorf("%q has given %d back", expression, left)
		}
	})
}
