package apiserver_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
)

// FuzzRules: whatever expressions there are in a policy or a definition, they are accepted
// or refused as the client's mistake.
func FuzzRules(f *testing.F) {
	for i, rule := range []string{
		"object.metadata.name.startsWith('a')", "self.n > 1", "oldSelf == self", "self.l.all(x, self.l.exists_one(y, x == y))", "self.m.map(k, k + self.m[k]).size() < 3",
		"!has(self.q) || quantity(self.q).isLessThan(quantity('1Gi'))", "variables.v == params.data['x']", "Object{metadata: Object.metadata{labels: {'a': 'b'}}}",
		`[JSONPatch{op: "add", path: "/metadata/labels/a", value: "b"}]`, "self.l.sortBy(x, -x).join(',')", "[1,2,3][self.n] in self.l",
	} {
		f.Add(uint8(i), rule)
	}
	s, _ := start(f)
	match := `"matchConstraints":{"resourceRules":[{"apiGroups":[""],"apiVersions":["v1"],"operations":["CREATE"],"resources":["configmaps"]}]}`
	forms := []struct{ path, body string }{
		{"/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies", `{"kind":"ValidatingAdmissionPolicy","apiVersion":"admissionregistration.k8s.io/v1","metadata":{"name":"p"},"spec":{"paramKind":{"apiVersion":"v1","kind":"ConfigMap"},` + match +
			`,"variables":[{"name":"v","expression":"object.metadata.name"}],"validations":[{"expression":%[1]s,"messageExpression":%[1]s}],"matchConditions":[{"name":"c","expression":%[1]s}],"auditAnnotations":[{"key":"k","valueExpression":%[1]s}]}}`},
		{"/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies", `{"kind":"MutatingAdmissionPolicy","apiVersion":"admissionregistration.k8s.io/v1","metadata":{"name":"p"},"spec":{"reinvocationPolicy":"Never",` + match +
			`,"variables":[{"name":"v","expression":%[1]s}],"mutations":[{"patchType":"ApplyConfiguration","applyConfiguration":{"expression":%[1]s}},{"patchType":"JSONPatch","jsonPatch":{"expression":%[1]s}}]}}`},
		{"/apis/apiextensions.k8s.io/v1/customresourcedefinitions", `{"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1","metadata":{"name":"ships.example.com"},"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"ships","kind":"Ship"},` +
			`"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","x-kubernetes-validations":[{"rule":%[1]s,"messageExpression":%[1]s,"optionalOldSelf":true}],` +
			`"properties":{"n":{"type":"integer"},"q":{"type":"string","maxLength":20},"l":{"type":"array","maxItems":9,"items":{"type":"integer"}},"m":{"type":"object","maxProperties":9,"additionalProperties":{"type":"string","maxLength":9}}}}}}}}]}}`},
	}
	f.Fuzz(func(t *testing.T, form uint8, rule string) {
		text, err := json.Marshal(rule)
		if err != nil {
			return
		}
		one := forms[int(form)%len(forms)]
		if w := send(t, s, http.MethodPost, one.path+"?dryRun=All", bodies[0], fmt.Appendf(nil, one.body, text)); lost(w) {
			t.Errorf("%q: %d %s", rule, w.Code, w.Body)
		}
	})
}
