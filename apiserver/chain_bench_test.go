package apiserver_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// BenchmarkChain is what a request costs with authentication (by a service account's
// token), authorization and admission, in a cluster with nothing configured, and in one
// with 10,000 bindings and 10 webhooks that are asked about nothing of this:
//
//	go test ./apiserver -run - -bench Chain
func BenchmarkChain(b *testing.B) {
	for _, bb := range []struct {
		name               string
		bindings, webhooks int
	}{{"empty", 0, 0}, {"10000 bindings, 10 webhooks", 10_000, 10}} {
		s, c := start(b)
		token := worker(b, c)
		bindMany(b, c, bb.bindings)
		hookMany(b, c, bb.webhooks)
		n := 0
		call := func(method, path, body string, want int) {
			r := httptest.NewRequest(method, path, bytes.NewReader([]byte(body)))
			r.Header.Set("Authorization", "Bearer "+token)
			r.Header.Set("Content-Type", benchJSON)
			r.Header.Set("Accept", benchProtobuf)
			w := httptest.NewRecorder()
			s.Handler().ServeHTTP(w, r)
			if w.Code != want {
				b.Fatalf("%s %s: %d %s", method, path, w.Code, w.Body)
			}
		}
		const maps = "/api/v1/namespaces/default/configmaps"
		call(http.MethodPost, maps, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one"}}`, http.StatusCreated)
		b.Run("get/"+bb.name, func(b *testing.B) {
			defer charge(b)()
			for b.Loop() {
				call(http.MethodGet, maps+"/one", "", http.StatusOK)
			}
		})
		b.Run("refused/"+bb.name, func(b *testing.B) {
			defer charge(b)()
			for b.Loop() {
				call(http.MethodGet, "/api/v1/namespaces/default/secrets/one", "", http.StatusForbidden)
			}
		})
		b.Run("create/"+bb.name, func(b *testing.B) {
			defer charge(b)()
			for b.Loop() {
				n++
				call(http.MethodPost, maps, fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"n%d"}}`, n), http.StatusCreated)
			}
		})
	}
}

// worker makes a service account that may use ConfigMaps and returns a token of it.
func worker(b *testing.B, c *kubernetes.Clientset) string {
	b.Helper()
	ctx, one := b.Context(), metav1.ObjectMeta{Name: "worker"}
	_, err := c.CoreV1().ServiceAccounts("default").Create(ctx, &corev1.ServiceAccount{ObjectMeta: one}, metav1.CreateOptions{})
	if err == nil {
		_, err = c.RbacV1().Roles("default").Create(ctx, &rbacv1.Role{ObjectMeta: one, Rules: []rbacv1.PolicyRule{
			{Verbs: []string{"*"}, APIGroups: []string{""}, Resources: []string{"configmaps"}},
		}}, metav1.CreateOptions{})
	}
	if err == nil {
		_, err = c.RbacV1().RoleBindings("default").Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: one, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "worker"},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "worker", Namespace: "default"}},
		}, metav1.CreateOptions{})
	}
	if err != nil {
		b.Fatal(err)
	}
	t, err := c.CoreV1().ServiceAccounts("default").CreateToken(ctx, "worker", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		b.Fatal(err)
	}
	return t.Status.Token
}

// bindMany makes role bindings, half of them in the namespace of the requests, and as
// many of the whole cluster.
func bindMany(b *testing.B, c *kubernetes.Clientset, n int) {
	b.Helper()
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"}
	for i := range n / 2 {
		meta := metav1.ObjectMeta{Name: fmt.Sprintf("binding-%d", i)}
		subjects := []rbacv1.Subject{
			{APIGroup: rbacv1.GroupName, Kind: "User", Name: fmt.Sprintf("user-%d", i)},
			{APIGroup: rbacv1.GroupName, Kind: "Group", Name: fmt.Sprintf("group-%d", i%100)},
		}
		if _, err := c.RbacV1().ClusterRoleBindings().Create(b.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects}, metav1.CreateOptions{}); err != nil {
			b.Fatal(err)
		}
		namespace := "default"
		if i%2 == 1 {
			namespace = "kube-public"
		}
		if _, err := c.RbacV1().RoleBindings(namespace).Create(b.Context(), &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects}, metav1.CreateOptions{}); err != nil {
			b.Fatal(err)
		}
	}
}

// hookMany configures webhooks, in turn for other resources, for objects with a label
// and under a condition.
func hookMany(b *testing.B, c *kubernetes.Clientset, n int) {
	b.Helper()
	none, url, fail := admissionregistrationv1.SideEffectClassNone, "https://127.0.0.1:1/", admissionregistrationv1.Fail
	for i := range n {
		hook := admissionregistrationv1.ValidatingWebhook{
			Name: fmt.Sprintf("hook%d.example.com", i), ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: &url}, SideEffects: &none, FailurePolicy: &fail,
			AdmissionReviewVersions: []string{"v1"}, Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{"CREATE"}, Rule: admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
			}},
		}
		switch i % 3 {
		case 0:
			hook.Rules[0].Resources = []string{"pods", "services"}
		case 1:
			hook.ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"hook": "yes"}}
		case 2:
			hook.MatchConditions = []admissionregistrationv1.MatchCondition{{Name: "named", Expression: `object.metadata.name.startsWith("hooked-")`}}
		}
		if _, err := c.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(b.Context(), &admissionregistrationv1.ValidatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("hooks-%d", i)}, Webhooks: []admissionregistrationv1.ValidatingWebhook{hook},
		}, metav1.CreateOptions{}); err != nil {
			b.Fatal(err)
		}
	}
}
