package all_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/periplus/periplus/apiserver/authz"
	"github.com/periplus/periplus/apiserver/authz/all"
	"github.com/periplus/periplus/apiserver/authz/webhook"
)

// nothing is a mode without opinions.
type nothing struct{}

func (nothing) Authorize(context.Context, *authz.Question) (authz.Decision, string, error) {
	return authz.NoOpinion, "", nil
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A judge answers reviews: alice may, bob must not, of others it knows nothing.
func judge(t *testing.T) (kubeconfig string, asked *atomic.Int32) {
	t.Helper()
	asked = new(atomic.Int32)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		var review authorizationv1.SubjectAccessReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		review.Status = authorizationv1.SubjectAccessReviewStatus{Allowed: review.Spec.User == "alice", Denied: review.Spec.User == "bob", Reason: "the judge said so"}
		if review.Spec.User == "broken" {
			http.Error(w, "no idea", http.StatusTeapot)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(review)
	}))
	t.Cleanup(s.Close)
	return write(t, "kubeconfig", fmt.Sprintf(`
apiVersion: v1
kind: Config
clusters: [{name: judge, cluster: {server: %q}}]
users: [{name: us, user: {}}]
contexts: [{name: it, context: {cluster: judge, user: us}}]
current-context: it
`, s.URL)), asked
}

func ask(t *testing.T, m authz.Mode, name, namespace string, groups ...string) (authz.Decision, error) {
	t.Helper()
	d, _, err := m.Authorize(t.Context(), &authz.Question{
		User: &user.DefaultInfo{Name: name, Groups: groups}, Verb: "get", IsResource: true, Version: "v1", Resource: "pods", Namespace: namespace,
	})
	return d, err
}

func TestWebhook(t *testing.T) {
	t.Parallel()
	file, asked := judge(t)
	o := all.Defaults()
	o.Modes, o.Webhook.Kubeconfig, o.Webhook.Version = []string{all.Node, all.RBAC, all.Webhook}, file, "v1"
	a, err := all.New(all.Config{Options: o, Node: nothing{}, RBAC: nothing{}})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]authz.Decision{"alice": authz.Allow, "bob": authz.Deny, "carol": authz.NoOpinion} {
		for range 2 { // the second time from memory
			if d, err := ask(t, a, name, "a"); d != want || err != nil {
				t.Errorf("%s: decision %d, error %v", name, d, err)
			}
		}
	}
	if n := asked.Load(); n != 3 {
		t.Errorf("the webhook was asked %d times, want 3", n)
	}
	if d, err := ask(t, a, "root", "a", "system:masters"); d != authz.Allow || err != nil || asked.Load() != 3 {
		t.Errorf("a master: decision %d, error %v", d, err)
	}
	if d, err := ask(t, a, "broken", "a"); d != authz.NoOpinion || err == nil {
		t.Errorf("a webhook that does not answer: decision %d, error %v", d, err)
	}
	err = authz.Check(t.Context(), a, &authz.Question{User: &user.DefaultInfo{Name: "broken"}, Verb: "get", Path: "/x"})
	if !apierrors.IsInternalError(err) {
		t.Errorf("the request fails with %v", err)
	}
	if _, err := a.Rules(&user.DefaultInfo{Name: "alice"}, "a"); err == nil {
		t.Error("the rules are said to be complete")
	}
}

const structured = `
apiVersion: apiserver.config.k8s.io/v1
kind: AuthorizationConfiguration
authorizers:
- type: Webhook
  name: judge
  webhook:
    timeout: 3s
    authorizedTTL: 5m
    unauthorizedTTL: 30s
    subjectAccessReviewVersion: v1
    matchConditionSubjectAccessReviewVersion: v1
    failurePolicy: Deny
    connectionInfo: {type: KubeConfigFile, kubeConfigFile: %q}
    matchConditions:
    - expression: has(request.resourceAttributes) && request.resourceAttributes.namespace == 'a'
- type: %s
  name: rest
`

func TestConfigFile(t *testing.T) {
	t.Parallel()
	file, asked := judge(t)
	path := write(t, "config.yaml", fmt.Sprintf(structured, file, "AlwaysAllow"))
	a, err := all.New(all.Config{Options: all.Options{ConfigFile: path}, Node: nothing{}, RBAC: nothing{}})
	if err != nil {
		t.Fatal(err)
	}
	want := func(name, namespace string, want authz.Decision) {
		t.Helper()
		if d, _ := ask(t, a, name, namespace); d != want {
			t.Errorf("%s in %s: decision %d, want %d", name, namespace, d, want)
		}
	}
	want("bob", "a", authz.Deny)
	want("broken", "a", authz.Deny)
	before := asked.Load()
	want("bob", "b", authz.Allow) // the condition keeps it from the webhook
	if asked.Load() != before {
		t.Error("the webhook was asked although its condition does not hold")
	}
	// A mistake changes nothing, and is told.
	if err := os.WriteFile(path, []byte(fmt.Sprintf(structured, file, "Sometimes")), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := a.Reload(); err == nil || !strings.Contains(err.Error(), `authorizers[1].type: Unsupported value: "Sometimes"`) {
		t.Errorf("a file with a mistake: %v", err)
	}
	want("bob", "b", authz.Allow)
	if err := os.WriteFile(path, []byte(fmt.Sprintf(structured, file, "AlwaysDeny")), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := a.Reload(); err != nil {
		t.Fatal(err)
	}
	want("bob", "b", authz.NoOpinion)
}

func TestValidate(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		o    all.Options
		want string
	}{
		{all.Options{Modes: []string{"RBAC", "Magic"}}, `authorization-mode "Magic" is not a valid mode: it must be one of ABAC, AlwaysAllow, AlwaysDeny, Node, RBAC, Webhook`},
		{all.Options{Modes: []string{"RBAC", "RBAC"}}, "has mode specified more than once"},
		{all.Options{Modes: []string{"ABAC"}}, "authorization-mode ABAC's authorization policy file not passed"},
		{all.Options{Modes: []string{"RBAC"}, PolicyFile: "x"}, "cannot specify --authorization-policy-file without mode ABAC"},
		{all.Options{Modes: []string{"Webhook"}}, "authorization-mode Webhook's authorization config file not passed"},
		{all.Options{Modes: []string{"RBAC"}, Webhook: webhook.Config{Kubeconfig: "x"}}, "cannot specify --authorization-webhook-config-file without mode Webhook"},
		{all.Options{Modes: []string{"RBAC"}, ConfigFile: "x"}, "--authorization-config can not be specified when"},
		{all.Options{ConfigFile: "/does/not/exist"}, "/does/not/exist: no such file"},
	} {
		if _, err := all.New(all.Config{Options: tt.o, Node: nothing{}, RBAC: nothing{}}); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v, want %q", tt.o, err, tt.want)
		}
	}
}
