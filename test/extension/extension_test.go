package extension_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	aggregator "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset"

	"github.com/periplus/periplus/apitest"
)

var flunders = schema.GroupVersionResource{Group: "wardle.example.com", Version: "v1beta1", Resource: "flunders"}

const registration = "v1beta1.wardle.example.com"

// TestExtension installs upstream's sample API server, uses it as its users do, takes it
// away for a while and removes it.
func TestExtension(t *testing.T) {
	ctx := t.Context()
	env := &apitest.Environment{Controllers: apitest.API()}
	config, err := env.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Error(err)
		}
	})
	core, services := kubernetes.NewForConfigOrDie(config), aggregator.NewForConfigOrDie(config).ApiregistrationV1().APIServices()
	sample := newSample(t, env.KubeConfig)
	sample.start(t)
	sample.register(ctx, t, core, services)
	await(ctx, t, services, apiregistrationv1.ConditionTrue, "Passed")

	t.Run("discovery", func(t *testing.T) { discovers(t, config) })
	t.Run("objects", func(t *testing.T) { objects(ctx, t, config) })
	t.Run("users", func(t *testing.T) { users(ctx, t, env, core) })
	t.Run("openapi", func(t *testing.T) { documents(ctx, t, core) })

	sample.stop(t)
	touch(ctx, t, core) // looked at again at once, not in half a minute
	await(ctx, t, services, apiregistrationv1.ConditionFalse, "FailedDiscoveryCheck")
	result := core.RESTClient().Get().AbsPath("/apis/wardle.example.com/v1beta1/flunders").Do(ctx)
	var code int
	if result.StatusCode(&code); code != http.StatusServiceUnavailable || !strings.Contains(bodyOf(result), "service unavailable") {
		t.Errorf("while the server is down: %d, %v", code, result.Error())
	}
	doc := bodyOf(core.RESTClient().Get().AbsPath("/apis").SetHeader("Accept", discovery.AcceptV2).Do(ctx))
	if !strings.Contains(doc, `"freshness":"Stale"`) {
		t.Error("aggregated discovery does not say that the group version is stale")
	}

	sample.start(t)
	await(ctx, t, services, apiregistrationv1.ConditionTrue, "Passed")
	if list, err := dynamic.NewForConfigOrDie(config).Resource(flunders).Namespace("default").List(ctx, metav1.ListOptions{}); err != nil || len(list.Items) == 0 {
		t.Errorf("after the server has come back: %v, %v", list, err)
	}
	if err := services.Delete(ctx, registration, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	gone(ctx, t, core)
}

// gone waits until the group is no longer served.
func gone(ctx context.Context, t *testing.T, core *kubernetes.Clientset) {
	t.Helper()
	for ctx.Err() == nil {
		groups, err := core.Discovery().ServerGroups()
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, g := range groups.Groups {
			found = found || g.Name == flunders.Group
		}
		if !found {
			return
		}
	}
}

func bodyOf(r rest.Result) string {
	body, err := r.Raw()
	if status, ok := err.(apierrors.APIStatus); ok { //nolint:errorlint // as it comes from the client
		return status.Status().Message + string(body)
	}
	return string(body)
}

func discovers(t *testing.T, config *rest.Config) {
	for name, legacy := range map[string]bool{"aggregated": false, "classic": true} {
		c := discovery.NewDiscoveryClientForConfigOrDie(config)
		c.UseLegacyDiscovery = legacy
		_, lists, err := c.ServerGroupsAndResources()
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		found := false
		for _, l := range lists {
			for _, r := range l.APIResources {
				found = found || l.GroupVersion == "wardle.example.com/v1beta1" && r.Name == "flunders" && r.Kind == "Flunder" && r.Namespaced
			}
		}
		if !found {
			t.Errorf("%s discovery does not show flunders", name)
		}
	}
}

func flunder(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "wardle.example.com/v1beta1", "kind": "Flunder", "metadata": map[string]any{"name": name}, "spec": map[string]any{},
	}}
}

func objects(ctx context.Context, t *testing.T, config *rest.Config) {
	c := dynamic.NewForConfigOrDie(config).Resource(flunders).Namespace("default")
	w, err := c.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	if _, err := c.Create(ctx, flunder("a"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Patch(ctx, "a", types.MergePatchType, []byte(`{"metadata":{"labels":{"x":"y"}}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Apply(ctx, "b", flunder("b"), metav1.ApplyOptions{FieldManager: "test"}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []struct {
		kind watch.EventType
		name string
	}{{watch.Added, "a"}, {watch.Modified, "a"}, {watch.Added, "b"}} {
		e, ok := <-w.ResultChan()
		if !ok {
			t.Fatal("the watch has ended")
		}
		if obj := e.Object.(*unstructured.Unstructured); e.Type != want.kind || obj.GetName() != want.name {
			t.Errorf("watch: %s %s, want %s %s", e.Type, obj.GetName(), want.kind, want.name)
		}
	}
	// Refusals arrive as the sample has written them.
	if _, err := c.Create(ctx, flunder("a"), metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) || !strings.Contains(err.Error(), `flunders.wardle.example.com "a" already exists`) {
		t.Errorf("the same again: %v", err)
	}
}

// users shows that the sample knows who asks, and asks this server what they may do.
func users(ctx context.Context, t *testing.T, env *apitest.Environment, core *kubernetes.Clientset) {
	ann, err := env.AddUser(apitest.User{Name: "ann", Groups: []string{"team"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := dynamic.NewForConfigOrDie(ann.Config()).Resource(flunders).Namespace("default")
	_, err = c.List(ctx, metav1.ListOptions{})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `User "ann" cannot list resource "flunders" in API group "wardle.example.com" in the namespace "default"`) {
		t.Errorf("without a role: %v", err)
	}
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "flunders"}, Rules: []rbacv1.PolicyRule{{Verbs: []string{"*"}, APIGroups: []string{flunders.Group}, Resources: []string{"flunders"}}}}
	if _, err := core.RbacV1().Roles("default").Create(ctx, role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "flunders"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "flunders"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "team"}}}
	if _, err := core.RbacV1().RoleBindings("default").Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	// This server knows the role at once; the sample remembers a refusal of its own for ten seconds.
	if _, err := c.Create(ctx, flunder("of-ann"), metav1.CreateOptions{}); err != nil {
		t.Errorf("with a role: %v", err)
	}
}

func documents(ctx context.Context, t *testing.T, core *kubernetes.Clientset) {
	var index struct {
		Paths map[string]struct{ ServerRelativeURL string }
	}
	body, err := core.RESTClient().Get().AbsPath("/openapi/v3").DoRaw(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(body, &index); err != nil {
		t.Fatal(err)
	}
	at := index.Paths["apis/wardle.example.com/v1beta1"].ServerRelativeURL
	body, err = core.RESTClient().Get().RequestURI(at).SetHeader("Accept", "application/json").DoRaw(ctx)
	if err != nil || !strings.Contains(string(body), "/apis/wardle.example.com/v1beta1/namespaces/{namespace}/flunders") {
		t.Errorf("OpenAPI v3 at %q: %v", at, err)
	}
	body, err = core.RESTClient().Get().AbsPath("/openapi/v2").SetHeader("Accept", "application/json").DoRaw(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"/apis/wardle.example.com/v1beta1/namespaces/{namespace}/flunders"`, `"/api/v1/pods"`, "v1beta1.Flunder"} {
		if !strings.Contains(string(body), want) {
			t.Errorf("OpenAPI v2 lacks %s", want)
		}
	}
}

func touch(ctx context.Context, t *testing.T, core *kubernetes.Clientset) {
	t.Helper()
	if _, err := core.CoreV1().Services("wardle").Patch(ctx, "api", types.MergePatchType, []byte(`{"metadata":{"annotations":{"touched":"yes"}}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}
