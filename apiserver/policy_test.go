package apiserver_test

import (
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestValidatingAdmissionPolicy: rules in CEL with variables, parameters and actions.
func TestValidatingAdmissionPolicy(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	_, c := start(t)
	api := c.AdmissionregistrationV1()
	rules := []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: ruleFor("", "v1", "configmaps", admissionregistrationv1.Create, admissionregistrationv1.Update)[0]}}
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "limit.example.com"},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			ParamKind:        &admissionregistrationv1.ParamKind{APIVersion: "v1", Kind: "ConfigMap"},
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: rules},
			MatchConditions:  []admissionregistrationv1.MatchCondition{{Name: "labelled", Expression: "has(object.metadata.labels)"}},
			Variables:        []admissionregistrationv1.Variable{{Name: "keys", Expression: "has(object.data) ? size(object.data) : 0"}},
			Validations: []admissionregistrationv1.Validation{
				{Expression: "variables.keys <= int(params.data.most)", MessageExpression: "'at most ' + params.data.most + ' keys in ' + namespaceObject.metadata.name", Reason: ptr(metav1.StatusReasonForbidden)},
				{Expression: "object.metadata.name != 'never'", Message: "that name is taken"},
				{Expression: "authorizer.group('apps').resource('deployments').namespace('default').check('delete').allowed()", Message: "may not delete deployments"},
			},
		},
	}
	bad := policy.DeepCopy()
	bad.Spec.Validations[0].Expression, bad.Spec.Validations[1].Expression = "variables.kyes == 1", "1 + 1"
	_, err := api.ValidatingAdmissionPolicies().Create(ctx, bad, metav1.CreateOptions{})
	for _, want := range []string{`spec.validations[0].expression: Invalid value: "variables.kyes == 1": compilation failed: ERROR: <input>:1:10: undefined field 'kyes'`, `spec.validations[1].expression: Invalid value: "1 + 1": must evaluate to bool`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
	if _, err := api.ValidatingAdmissionPolicies().Create(ctx, policy, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	bind := func(name string, actions ...admissionregistrationv1.ValidationAction) {
		t.Helper()
		b := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName: policy.Name, ValidationActions: actions,
				ParamRef:       &admissionregistrationv1.ParamRef{Name: "limits", Namespace: "kube-public", ParameterNotFoundAction: ptr(admissionregistrationv1.DenyAction)},
				MatchResources: &admissionregistrationv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": "default"}}},
			},
		}
		if _, err := api.ValidatingAdmissionPolicyBindings().Create(ctx, b, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	maps := c.CoreV1().ConfigMaps("default")
	create := func(name string, labelled bool, data map[string]string) error {
		m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data}
		if labelled {
			m.Labels = map[string]string{"a": "b"}
		}
		_, err := maps.Create(ctx, m, metav1.CreateOptions{})
		return err
	}
	if err := create("unbound", true, map[string]string{"a": "", "b": ""}); err != nil {
		t.Errorf("a policy without a binding: %v", err)
	}
	bind("deny", admissionregistrationv1.Deny)
	if err := create("no-params", true, nil); err == nil || !strings.Contains(err.Error(), "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction") {
		t.Errorf("without parameters: %v", err)
	}
	if _, err := c.CoreV1().ConfigMaps("kube-public").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "limits", Labels: map[string]string{"a": "b"}}, Data: map[string]string{"most": "1", "x": "", "y": ""}}, metav1.CreateOptions{}); err != nil {
		t.Errorf("another namespace: %v", err)
	}
	err = create("many", true, map[string]string{"a": "", "b": ""})
	if want := `configmaps "many" is forbidden: ValidatingAdmissionPolicy 'limit.example.com' with binding 'deny' denied request: at most 1 keys in default`; !apierrors.IsForbidden(err) || err.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}
	if err := create("never", true, nil); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "that name is taken") {
		t.Errorf("%v", err)
	}
	if err := create("few", true, map[string]string{"a": ""}); err != nil {
		t.Error(err)
	}
	if err := create("bare", false, map[string]string{"a": "", "b": ""}); err != nil {
		t.Errorf("a condition that does not hold: %v", err)
	}
	if err := api.ValidatingAdmissionPolicyBindings().Delete(ctx, "deny", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	bind("warn", admissionregistrationv1.Warn)
	r := c.CoreV1().RESTClient().Post().Namespace("default").Resource("configmaps").Body(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "warned", Labels: map[string]string{"a": "b"}}, Data: map[string]string{"a": "", "b": ""}}).Do(ctx)
	if err := r.Error(); err != nil || len(r.Warnings()) != 1 || !strings.Contains(r.Warnings()[0].Text, "Validation failed for ValidatingAdmissionPolicy 'limit.example.com' with binding 'warn': at most 1 keys") {
		t.Errorf("%v %v", err, r.Warnings())
	}
}
