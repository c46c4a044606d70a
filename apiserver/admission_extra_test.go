package apiserver_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	imagepolicyv1alpha1 "k8s.io/api/imagepolicy/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/periplus/periplus/apiserver"
	"github.com/periplus/periplus/apiserver/audit"
)

// TestOptionalPlugins: those that are off by default are asked when they are named.
func TestOptionalPlugins(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	images := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		review := &imagepolicyv1alpha1.ImageReview{}
		if err := json.NewDecoder(r.Body).Decode(review); err != nil || len(review.Spec.Containers) != 1 {
			http.Error(w, "what is this", http.StatusBadRequest)
			return
		}
		review.Status.Allowed, review.Status.Reason = review.Spec.Containers[0].Image != "bad", "it is bad"
		_ = json.NewEncoder(w).Encode(review)
	}))
	t.Cleanup(images.Close)
	file := filepath.Join(t.TempDir(), "images.yaml")
	if err := os.WriteFile(file, []byte(`{apiVersion: v1, kind: Config, clusters: [{name: c, cluster: {server: "`+images.URL+`"}}], contexts: [{name: c, context: {cluster: c}}], current-context: c}`), 0o600); err != nil {
		t.Fatal(err)
	}
	c := withoutAccounts(t, func(config *apiserver.Config) {
		config.Admission.Enable = []string{"AlwaysPullImages", "NamespaceAutoProvision", "ImagePolicyWebhook", "PodNodeSelector", "DenyServiceExternalIPs"}
		config.Admission.Configurations = map[string][]byte{
			"ImagePolicyWebhook": []byte("imagePolicy: {kubeConfigFile: " + file + "}"),
			"PodNodeSelector":    []byte("podNodeSelectorPluginConfig: {clusterDefaultNodeSelector: pool=general}"),
		}
	})
	p, err := c.CoreV1().Pods("made-by-the-way").Create(ctx, onePod("p", nil), metav1.CreateOptions{})
	if err != nil || p.Spec.Containers[0].ImagePullPolicy != corev1.PullAlways || p.Spec.NodeSelector["pool"] != "general" {
		t.Errorf("%+v %v", p, err)
	}
	if ns, err := c.CoreV1().Namespaces().Get(ctx, "made-by-the-way", metav1.GetOptions{}); err != nil || ns.Labels["kubernetes.io/metadata.name"] != ns.Name || ns.Status.Phase != corev1.NamespaceActive {
		t.Errorf("%+v %v", ns, err)
	}
	_, err = c.CoreV1().Pods("default").Create(ctx, onePod("q", func(s *corev1.PodSpec) { s.Containers[0].Image = "bad" }), metav1.CreateOptions{})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `pods "q" is forbidden: image policy webhook backend denied one or more images: it is bad`) {
		t.Errorf("%v", err)
	}
	_, err = c.CoreV1().Services("default").Create(ctx, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "s"}, Spec: corev1.ServiceSpec{
		Ports: []corev1.ServicePort{{Port: 80}}, ExternalIPs: []string{"198.51.100.1"}}}, metav1.CreateOptions{})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "Use of external IPs is denied by admission control") {
		t.Errorf("%v", err)
	}
}

// TestWebhooksInTheAuditLog: what mutating webhooks have done, and which ones could not be asked.
func TestWebhooksInTheAuditLog(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	policy, path := filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "audit.log")
	if err := os.WriteFile(policy, []byte(`
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules: [{level: Request, resources: [{group: "", resources: [configmaps]}]}, {level: None}]
`), 0o600); err != nil {
		t.Fatal(err)
	}
	p := startProgram(t, map[string]func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse{
		"/label": func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
			return patched(`[{"op":"add","path":"/metadata/labels","value":{"a":"b"}}]`)
		},
		"/none": func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse { return allowed() },
	})
	s, c := startWith(t, func(config *apiserver.Config) {
		config.Audit = audit.Defaults()
		config.Audit.PolicyFile, config.Audit.LogPath = policy, path
	})
	rules, ignore := ruleFor("", "v1", "configmaps", admissionregistrationv1.Create), admissionregistrationv1.Ignore
	mutating(t, c, "m",
		admissionregistrationv1.MutatingWebhook{Name: "label.example.com", ClientConfig: p.client("/label"), Rules: rules},
		admissionregistrationv1.MutatingWebhook{Name: "none.example.com", ClientConfig: p.client("/none"), Rules: rules},
		admissionregistrationv1.MutatingWebhook{Name: "down.example.com", ClientConfig: p.client("/down"), Rules: rules, FailurePolicy: &ignore})
	validating(t, c, "v", admissionregistrationv1.ValidatingWebhook{Name: "gone.example.com", ClientConfig: p.client("/gone"), Rules: rules, FailurePolicy: &ignore})
	send(t, s, http.MethodPost, "/api/v1/namespaces/default/configmaps", "application/json", []byte(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"m"}}`))
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var event struct{ Annotations map[string]string }
	for line := range bytes.Lines(data) {
		if bytes.Contains(line, []byte(`"requestURI":"/api/v1/namespaces/default/configmaps"`)) {
			if err := json.Unmarshal(line, &event); err != nil {
				t.Fatalf("%v: %s", err, line)
			}
		}
	}
	for key, want := range map[string]string{
		"patch.webhook.admission.k8s.io/round_0_index_0":                  `{"configuration":"m","webhook":"label.example.com","patch":[{"op":"add","path":"/metadata/labels","value":{"a":"b"}}],"patchType":"JSONPatch"}`,
		"mutation.webhook.admission.k8s.io/round_0_index_0":               `{"configuration":"m","webhook":"label.example.com","mutated":true}`,
		"mutation.webhook.admission.k8s.io/round_0_index_1":               `{"configuration":"m","webhook":"none.example.com","mutated":false}`,
		"mutation.webhook.admission.k8s.io/round_0_index_2":               `{"configuration":"m","webhook":"down.example.com","mutated":false}`,
		"failed-open.mutation.webhook.admission.k8s.io/round_0_index_2":   "down.example.com",
		"failed-open.validating.webhook.admission.k8s.io/round_0_index_0": "gone.example.com",
	} {
		if got := event.Annotations[key]; got != want {
			t.Errorf("%s: %s\nwant %s", key, got, want)
		}
	}
}

// TestTokensAreAdmitted: webhooks see requests for tokens, with the audiences that they will have.
func TestTokensAreAdmitted(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	var seen authenticationv1.TokenRequest
	p := startProgram(t, map[string]func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse{
		"/token": func(r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
			_ = json.Unmarshal(r.Object.Raw, &seen)
			if r.Kind.Kind == "TokenRequest" && r.Name == "robot" {
				return &admissionv1.AdmissionResponse{Result: &metav1.Status{Message: "no robots"}}
			}
			return allowed()
		},
	})
	_, c := start(t)
	for _, name := range []string{"robot", "person"} {
		if _, err := c.CoreV1().ServiceAccounts("default").Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	validating(t, c, "v", admissionregistrationv1.ValidatingWebhook{Name: "token.example.com", ClientConfig: p.client("/token"), Rules: ruleFor("", "v1", "serviceaccounts/token", admissionregistrationv1.Create)})
	if _, err := c.CoreV1().ServiceAccounts("default").CreateToken(ctx, "robot", &authenticationv1.TokenRequest{}, metav1.CreateOptions{}); err == nil || !strings.Contains(err.Error(), "no robots") {
		t.Errorf("%v", err)
	}
	if _, err := c.CoreV1().ServiceAccounts("default").CreateToken(ctx, "person", &authenticationv1.TokenRequest{}, metav1.CreateOptions{}); err != nil || len(seen.Spec.Audiences) == 0 || seen.Spec.ExpirationSeconds == nil {
		t.Errorf("%v, webhook saw %+v", err, seen.Spec)
	}
}

// TestPolicyGuard: who binds a policy to parameters may read them.
func TestPolicyGuard(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s, root := start(t)
	allow(t, root, "jane", "create", "admissionregistration.k8s.io", "validatingadmissionpolicybindings")
	if _, err := root.AdmissionregistrationV1().ValidatingAdmissionPolicies().Create(ctx, &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			ParamKind: &admissionregistrationv1.ParamKind{APIVersion: "v1", Kind: "Secret"}, Validations: []admissionregistrationv1.Validation{{Expression: "true"}},
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: ruleFor("", "v1", "configmaps", admissionregistrationv1.Create)[0]}}},
		}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	jane := clientOf(t, s.ClientConfig("jane"))
	bind := func(name string) error {
		_, err := jane.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Create(ctx, &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName: "p", ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Warn},
				ParamRef: &admissionregistrationv1.ParamRef{Name: "s", Namespace: "default", ParameterNotFoundAction: ptr(admissionregistrationv1.AllowAction)},
			}}, metav1.CreateOptions{})
		return err
	}
	if err := bind("b"); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), `spec.paramRef: Forbidden: user &{jane`) || !strings.Contains(err.Error(), `does not have "get" permission on the object referenced by paramRef`) {
		t.Errorf("%v", err)
	}
	allow(t, root, "jane", "get", "", "secrets")
	if err := bind("b"); err != nil {
		t.Error(err)
	}
}

// TestConstrainedImpersonation: an agent acts as its own node, for what it may do as such.
func TestConstrainedImpersonation(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s, root := start(t)
	grant := func(name string, rules ...rbacv1.PolicyRule) {
		t.Helper()
		if _, err := root.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := root.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "default", Name: "agent"}}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: name}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	grant("be", rbacv1.PolicyRule{Verbs: []string{"impersonate:associated-node"}, APIGroups: []string{"authentication.k8s.io"}, Resources: []string{"nodes"}})
	grant("do", rbacv1.PolicyRule{Verbs: []string{"impersonate-on:associated-node:get"}, APIGroups: []string{""}, Resources: []string{"nodes"}})
	token := agentOn(t, root, "n1")
	get := func(as, path string) (int, string) {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Impersonate-User", as)
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	if code, body := get("system:node:n1", "/api/v1/nodes/n1"); code != http.StatusOK {
		t.Errorf("own node: %d %s", code, body)
	}
	if code, body := get("system:node:n1", "/api/v1/nodes"); code != http.StatusForbidden || !strings.Contains(body, `cannot impersonate-on:associated-node:list`) {
		t.Errorf("another verb: %d %s", code, body)
	}
	if code, body := get("system:node:n2", "/api/v1/nodes/n1"); code != http.StatusForbidden || !strings.Contains(body, `cannot impersonate-on:arbitrary-node:get`) {
		t.Errorf("another node: %d %s", code, body)
	}
}

// agentOn returns the token of a pod with the account agent on a node.
func agentOn(t *testing.T, c kubernetes.Interface, node string) string {
	t.Helper()
	ctx := t.Context()
	_, err := c.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, metav1.CreateOptions{})
	if err == nil {
		_, err = c.CoreV1().ServiceAccounts("default").Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "agent"}}, metav1.CreateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	pod, err := c.CoreV1().Pods("default").Create(ctx, onePod("agent", func(s *corev1.PodSpec) { s.NodeName, s.ServiceAccountName = node, "agent" }), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.CoreV1().ServiceAccounts("default").CreateToken(ctx, "agent", &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return got.Status.Token
}

// TestReviewsAreNotAskedAbout: a rule that names reviews has no effect, and says so.
func TestReviewsAreNotAskedAbout(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	_, c := start(t)
	url, none := "https://127.0.0.1:1/", admissionregistrationv1.SideEffectClassNone
	r := c.AdmissionregistrationV1().RESTClient().Post().Resource("validatingwebhookconfigurations").Body(&admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "v"}, Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "reviews.example.com", ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: &url}, SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
			Rules: ruleFor("authentication.k8s.io", "v1", "tokenreviews", admissionregistrationv1.Create)}},
	}).Do(ctx)
	const want = "webhooks[0].rules[0]: tokenreviews.authentication.k8s.io is excluded from admission webhooks; this rule will have no effect"
	if w := r.Warnings(); r.Error() != nil || len(w) != 1 || w[0].Text != want {
		t.Errorf("%v %+v", r.Error(), w)
	}
	if _, err := c.AuthenticationV1().TokenReviews().Create(ctx, &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: "x"}}, metav1.CreateOptions{}); err != nil {
		t.Error(err)
	}
}
