package apiserver_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestDryRunStoresNothing goes through the whole chain with every verb.
func TestDryRunStoresNothing(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	_, c := start(t)
	maps, dry := c.CoreV1().ConfigMaps("kube-public"), []string{metav1.DryRunAll}
	made, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{DryRun: dry})
	if err != nil || made.UID == "" || made.ResourceVersion != "" {
		t.Fatalf("create: %+v, %v", made, err)
	}
	if _, err := maps.Get(ctx, "a", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Fatalf("after the dry creation: %v, want NotFound", err)
	}
	stored := put(t, maps, "a", nil)
	if _, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{DryRun: dry}); !apierrors.IsAlreadyExists(err) {
		t.Errorf("create again: %v, want AlreadyExists", err)
	}
	change := stored.DeepCopy()
	change.Data = map[string]string{"k": "v"}
	if got, err := maps.Update(ctx, change, metav1.UpdateOptions{DryRun: dry}); err != nil || got.Data["k"] != "v" {
		t.Errorf("update: %v, %v", got, err)
	}
	if got, err := maps.Patch(ctx, "a", types.MergePatchType, []byte(`{"data":{"k":"w"}}`), metav1.PatchOptions{DryRun: dry}); err != nil || got.Data["k"] != "w" {
		t.Errorf("patch: %v, %v", got, err)
	}
	if err := maps.Delete(ctx, "a", metav1.DeleteOptions{DryRun: dry}); err != nil {
		t.Errorf("delete: %v", err)
	}
	if err := maps.DeleteCollection(ctx, metav1.DeleteOptions{DryRun: dry}, metav1.ListOptions{}); err != nil {
		t.Errorf("delete all: %v", err)
	}
	got, err := maps.Get(ctx, "a", metav1.GetOptions{})
	if err != nil || got.ResourceVersion != stored.ResourceVersion {
		t.Errorf("in the end: %+v, %v; want what was stored at %s", got, err, stored.ResourceVersion)
	}
	if _, err := maps.Create(ctx, stored, metav1.CreateOptions{DryRun: []string{"Some"}}); !apierrors.IsInvalid(err) {
		t.Errorf("dryRun=Some: %v, want a refusal", err)
	}
	// What a dry creation would have taken is free.
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "s"}, Spec: corev1.ServiceSpec{ClusterIP: "10.43.0.77", Ports: []corev1.ServicePort{{Port: 80}}}}
	for i, o := range []metav1.CreateOptions{{DryRun: dry}, {DryRun: dry}, {}} {
		if _, err := c.CoreV1().Services("default").Create(ctx, service, o); err != nil {
			t.Errorf("service %d: %v", i, err)
		}
	}
}

// TestPreconditions: a deletion is of the object that was meant.
func TestPreconditions(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	_, c := start(t)
	maps := c.CoreV1().ConfigMaps("kube-public")
	made := put(t, maps, "a", nil)
	other, old := types.UID("other"), made.ResourceVersion
	made = relabel(t, maps, "a", `{"x":"y"}`)
	for name, p := range map[string]*metav1.Preconditions{"UID": {UID: &other}, "ResourceVersion": {ResourceVersion: &old}} {
		err := maps.Delete(ctx, "a", metav1.DeleteOptions{Preconditions: p})
		if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "Precondition failed: "+name+" in precondition") {
			t.Errorf("%s: %v, want Conflict", name, err)
		}
	}
	if err := maps.Delete(ctx, "a", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &made.UID, ResourceVersion: &made.ResourceVersion}}); err != nil {
		t.Error(err)
	}
	wrong := put(t, maps, "b", nil).DeepCopy()
	wrong.UID, wrong.ResourceVersion = "other", ""
	if _, err := maps.Update(ctx, wrong, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("update under another UID: %v, want Conflict", err)
	}
}

// TestFinalizers keep a deleted object until the last is taken off; that answer
// shows the object without it.
func TestFinalizers(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	_, c := start(t)
	maps := c.CoreV1().ConfigMaps("kube-public")
	if _, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", Finalizers: []string{"example.com/x", "example.com/y"}}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := maps.Delete(ctx, "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	held, err := maps.Get(ctx, "a", metav1.GetOptions{})
	if err != nil || held.DeletionTimestamp == nil || *held.DeletionGracePeriodSeconds != 0 {
		t.Fatalf("after the deletion: %+v, %v", held, err)
	}
	if _, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) || !strings.Contains(err.Error(), "object is being deleted") {
		t.Errorf("create meanwhile: %v", err)
	}
	if err := maps.Delete(ctx, "a", metav1.DeleteOptions{}); err != nil {
		t.Errorf("deleted twice: %v", err)
	}
	if _, err := maps.Patch(ctx, "a", types.MergePatchType, []byte(`{"metadata":{"finalizers":["example.com/x","example.com/y","example.com/z"]}}`), metav1.PatchOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("another finalizer: %v, want Invalid", err)
	}
	w, err := maps.Watch(ctx, metav1.ListOptions{ResourceVersion: held.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	if _, err := maps.Patch(ctx, "a", types.MergePatchType, []byte(`{"metadata":{"finalizers":["example.com/y"]}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	last, err := maps.Patch(ctx, "a", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	if err != nil || len(last.Finalizers) != 0 || last.Name != "a" {
		t.Errorf("the last patch: %+v, %v", last, err)
	}
	events(t, w, "MODIFIED a", "DELETED a")

	// Propagation is a finalizer for the garbage collector.
	put(t, maps, "b", nil)
	orphan := metav1.DeletePropagationOrphan
	if err := maps.Delete(ctx, "b", metav1.DeleteOptions{PropagationPolicy: &orphan}); err != nil {
		t.Fatal(err)
	}
	if b, err := maps.Get(ctx, "b", metav1.GetOptions{}); err != nil || len(b.Finalizers) != 1 || b.Finalizers[0] != metav1.FinalizerOrphanDependents {
		t.Errorf("orphaned: %+v, %v", b, err)
	}

	// What owns pods since v1 leaves them, if the deletion does not say otherwise.
	controllers := c.CoreV1().ReplicationControllers("default")
	for name, policy := range map[string]*metav1.DeletionPropagation{"unsaid": nil, "said": new(metav1.DeletePropagationBackground)} {
		rc := &corev1.ReplicationController{ObjectMeta: metav1.ObjectMeta{Name: name}}
		rc.Spec.Selector, rc.Spec.Template = map[string]string{"a": "b"}, &corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "b"}}, Spec: pod("x").Spec}
		if _, err := controllers.Create(ctx, rc, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := controllers.Delete(ctx, name, metav1.DeleteOptions{PropagationPolicy: policy}); err != nil {
			t.Fatal(err)
		}
		kept, err := controllers.Get(ctx, name, metav1.GetOptions{})
		if policy == nil && (err != nil || !slices.Equal(kept.Finalizers, []string{metav1.FinalizerOrphanDependents})) || policy != nil && !apierrors.IsNotFound(err) {
			t.Errorf("%s: %v, %v", name, kept.Finalizers, err)
		}
	}
}

// TestGracefulDeletion of pods: at once while on no node, else marked until the
// kubelet confirms with a grace period of zero.
func TestGracefulDeletion(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	_, c := start(t)
	pods := c.CoreV1().Pods("default")
	account(t, c)
	create := func(name, node string) *corev1.Pod {
		p := pod(name)
		p.Spec.NodeName = node
		made, err := pods.Create(ctx, p, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	create("nowhere", "")
	if err := pods.Delete(ctx, "nowhere", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := pods.Get(ctx, "nowhere", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("unscheduled pod: %v, want NotFound", err)
	}

	made := create("here", "n1")
	if err := pods.Delete(ctx, "here", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	marked, err := pods.Get(ctx, "here", metav1.GetOptions{})
	if err != nil || marked.DeletionTimestamp == nil || *marked.DeletionGracePeriodSeconds != 30 || marked.Generation != made.Generation+1 {
		t.Fatalf("marked: %+v, %v", marked, err)
	}
	long, short := int64(90), int64(5)
	if err := pods.Delete(ctx, "here", metav1.DeleteOptions{GracePeriodSeconds: &long}); err != nil {
		t.Fatal(err)
	}
	if p, err := pods.Get(ctx, "here", metav1.GetOptions{}); err != nil || *p.DeletionGracePeriodSeconds != 30 {
		t.Errorf("a longer grace period: %+v, %v; want the first", p.ObjectMeta, err)
	}
	if err := pods.Delete(ctx, "here", metav1.DeleteOptions{GracePeriodSeconds: &short}); err != nil {
		t.Fatal(err)
	}
	if p, err := pods.Get(ctx, "here", metav1.GetOptions{}); err != nil || *p.DeletionGracePeriodSeconds != 5 || !p.DeletionTimestamp.Before(marked.DeletionTimestamp) {
		t.Errorf("a shorter grace period: %+v, %v", p.ObjectMeta, err)
	}
	now := int64(0)
	other := types.UID("other")
	if err := pods.Delete(ctx, "here", metav1.DeleteOptions{GracePeriodSeconds: &now, Preconditions: &metav1.Preconditions{UID: &other}}); !apierrors.IsConflict(err) {
		t.Errorf("confirmed for another pod: %v, want Conflict", err)
	}
	if err := pods.Delete(ctx, "here", metav1.DeleteOptions{GracePeriodSeconds: &now, Preconditions: &metav1.Preconditions{UID: &made.UID}}); err != nil {
		t.Fatal(err)
	}
	if _, err := pods.Get(ctx, "here", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("confirmed: %v, want NotFound", err)
	}
}

// TestPatchesMeet: patches of different fields by many writers all succeed,
// because a patch is repeated on the newer object; one that names a revision is not.
func TestPatchesMeet(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	_, c := start(t)
	maps := c.CoreV1().ConfigMaps("kube-public")
	made := put(t, maps, "a", nil)
	const writers, each = 8, 10
	var group sync.WaitGroup
	for i := range writers {
		group.Go(func() {
			for j := range each {
				body := fmt.Sprintf(`{"data":{"k%d-%d":"x"}}`, i, j)
				if _, err := maps.Patch(ctx, "a", []types.PatchType{types.MergePatchType, types.StrategicMergePatchType}[i%2], []byte(body), metav1.PatchOptions{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	got, err := maps.Get(ctx, "a", metav1.GetOptions{})
	if err != nil || len(got.Data) != writers*each {
		t.Fatalf("%d keys, %v; want %d", len(got.Data), err, writers*each)
	}
	_, err = maps.Patch(ctx, "a", types.MergePatchType, []byte(`{"metadata":{"resourceVersion":"`+made.ResourceVersion+`"},"data":{"late":"x"}}`), metav1.PatchOptions{})
	if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "the object has been modified; please apply your changes to the latest version and try again") {
		t.Errorf("patch of an old revision: %v, want Conflict", err)
	}
	// A patch that changes nothing writes nothing.
	same, err := maps.Patch(ctx, "a", types.MergePatchType, []byte(`{"data":{"k0-0":"x"}}`), metav1.PatchOptions{})
	if err != nil || same.ResourceVersion != got.ResourceVersion {
		t.Errorf("an empty change: revision %s, %v; want %s", same.ResourceVersion, err, got.ResourceVersion)
	}
}

// TestFieldValidation of unknown and duplicate fields, in bodies and patches.
func TestFieldValidation(t *testing.T) {
	t.Parallel()
	_, c := start(t)
	put(t, c.CoreV1().ConfigMaps("kube-public"), "a", nil)
	send := func(verb, path, media, validation, body string) (int, []string, string) {
		r := c.CoreV1().RESTClient().Verb(verb).AbsPath(path).Param("fieldValidation", validation).SetHeader("Content-Type", media).SetHeader("Accept", "application/json").Body([]byte(body)).Do(t.Context())
		code := 0
		r.StatusCode(&code)
		var warnings []string
		for _, w := range r.Warnings() {
			warnings = append(warnings, w.Text)
		}
		text := ""
		if err := r.Error(); err != nil {
			text = err.Error()
		}
		return code, warnings, text
	}
	const maps = "/api/v1/namespaces/kube-public/configmaps"
	unknown := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"NAME","nahme":"x"},"datta":{},"data":{"a":"1","a":"2"}}`
	for _, test := range []struct {
		name, verb, path, media, validation, body string
		code                                      int
		warnings                                  []string
		message                                   string
	}{
		{"strict", "POST", maps, "application/json", "Strict", unknown, 400, nil,
			`ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: unknown field "metadata.nahme", unknown field "datta", duplicate field "data.a"`},
		{"warn", "POST", maps, "application/json", "Warn", strings.ReplaceAll(unknown, "NAME", "warned"), 201,
			[]string{`unknown field "metadata.nahme"`, `unknown field "datta"`, `duplicate field "data.a"`}, ""},
		{"default", "POST", maps, "application/json", "", strings.ReplaceAll(unknown, "NAME", "default"), 201,
			[]string{`unknown field "metadata.nahme"`, `unknown field "datta"`, `duplicate field "data.a"`}, ""},
		{"ignore", "POST", maps, "application/json", "Ignore", strings.ReplaceAll(unknown, "NAME", "ignored"), 201, nil, ""},
		{"bad", "POST", maps, "application/json", "Lax", unknown, 422, nil, `CreateOptions.meta.k8s.io "" is invalid: fieldValidation: Unsupported value: "Lax": supported values: "", "Ignore", "Strict", "Warn"`},
		{"yaml", "POST", maps, "application/yaml", "Strict", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndatta: {}\n", 400, nil, `unknown field "datta"`},
		{"patch", "PATCH", maps + "/a", string(types.MergePatchType), "Strict", `{"datta":{}}`, 400, nil, `strict decoding error: unknown field "datta"`},
		{"patch warned", "PATCH", maps + "/a", string(types.StrategicMergePatchType), "", `{"datta":{}}`, 200, []string{`unknown field "datta"`}, ""},
		{"type", "POST", maps, "application/json", "Strict", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"},"data":{"a":1}}`, 400, nil, "cannot unmarshal number"},
		{"kind", "POST", maps, "application/json", "Strict", `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"x"}}`, 400, nil, "Secret"},
		{"version", "POST", maps, "application/json", "Strict", `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"x"}}`, 400, nil, "does not match the expected API version (v1)"},
		{"not JSON", "POST", maps, "application/json", "Strict", `{"apiVersion":`, 400, nil, ""},
		{"empty", "POST", maps, "application/json", "Strict", ``, 400, nil, ""},
		{"media", "POST", maps, "text/plain", "Strict", `{}`, http.StatusUnsupportedMediaType, nil, ""},
		{"patch media", "PATCH", maps + "/a", "application/json", "Strict", `{}`, http.StatusUnsupportedMediaType, nil, ""},
		{"name", "PUT", maps + "/a", "application/json", "Strict", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b"}}`, 400, nil, "the name of the object (b) does not match the name on the URL (a)"},
		{"namespace", "POST", maps, "application/json", "Strict", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","namespace":"other"}}`, 400, nil, "the namespace of the provided object does not match the namespace sent on the request"},
		{"invalid", "POST", maps, "application/json", "Strict", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"X"},"data":{"a b":"c"}}`, 422, nil, `ConfigMap "X" is invalid: [metadata.name: Invalid value: "X"`},
		{"missing namespace", "POST", "/api/v1/namespaces/none/configmaps", "application/json", "Strict", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"}}`, 404, nil, `namespaces "none" not found`},
		{"json patch test", "PATCH", maps + "/a", string(types.JSONPatchType), "", `[{"op":"test","path":"/metadata/name","value":"b"}]`, 422, nil, ""},
		{"json patch form", "PATCH", maps + "/a", string(types.JSONPatchType), "", `{}`, 400, nil, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			code, warnings, message := send(test.verb, test.path, test.media, test.validation, test.body)
			if code != test.code || !strings.Contains(message, test.message) || fmt.Sprint(warnings) != fmt.Sprint(test.warnings) {
				t.Errorf("%d %q %q\nwant %d %q %q", code, warnings, message, test.code, test.warnings, test.message)
			}
		})
	}
}

// TestImpersonation: who may, acts as somebody else; who may not, is told so.
func TestImpersonation(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s, _ := start(t)
	as := func(name string, headers map[string]string) error {
		config := s.ClientConfig(name, map[string]string{"root": "system:masters"}[name])
		other := clientOf(t, config)
		r := other.CoreV1().RESTClient().Get().AbsPath("/api/v1/namespaces/default/pods")
		for k, v := range headers {
			r = r.SetHeader(k, v)
		}
		return r.Do(ctx).Error()
	}
	if err := as("root", nil); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		sender  string
		headers map[string]string
		want    string
	}{
		{"root", map[string]string{"Impersonate-User": "bob"}, `pods is forbidden: User "bob" cannot list resource "pods" in API group "" in the namespace "default"`},
		{"root", map[string]string{"Impersonate-User": "system:serviceaccount:default:x"}, `User "system:serviceaccount:default:x" cannot list`},
		{"root", map[string]string{"Impersonate-User": "bob", "Impersonate-Group": "system:masters"}, ""},
		{"root", map[string]string{"Impersonate-Group": "system:masters"}, "without impersonating a user name"},
		{"bob", map[string]string{"Impersonate-User": "root", "Impersonate-Group": "system:masters"}, `pods is forbidden: User "bob" cannot impersonate-on:user-info:list resource "pods" in API group "" in the namespace "default"`},
		{"bob", map[string]string{"Impersonate-User": "system:serviceaccount:a:x"}, `pods is forbidden: User "bob" cannot impersonate-on:serviceaccount:list resource "pods" in API group "" in the namespace "default"`},
	} {
		err := as(test.sender, test.headers)
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s with %v: %v, want %q", test.sender, test.headers, err, test.want)
		}
	}
}

// TestEscalation: nobody gives away what he does not have.
func TestEscalation(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s, root := start(t)
	rule := func(verbs, resource string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{Verbs: strings.Fields(verbs), APIGroups: []string{"", "rbac.authorization.k8s.io"}, Resources: strings.Fields(resource)}
	}
	give := func(user string, rules ...rbacv1.PolicyRule) {
		t.Helper()
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "of-" + user}, Rules: rules}
		binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "of-" + user}, Subjects: []rbacv1.Subject{{Kind: "User", Name: user}}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: role.Name}}
		if _, err := root.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := root.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	manage := rule("create update patch get", "roles rolebindings clusterroles")
	give("eve", manage, rule("get list", "pods"))
	give("lisa", manage, rule("escalate bind", "roles clusterroles"))
	for user, refused := range map[string]bool{"eve": true, "lisa": false} {
		api := clientOf(t, s.ClientConfig(user)).RbacV1()
		held := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: user + "-held"}, Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}}}}
		made, err := api.Roles("default").Create(ctx, held, metav1.CreateOptions{})
		if err != nil {
			t.Errorf("%s, what is held: %v", user, err)
			continue
		}
		more := made.DeepCopy()
		more.Rules[0].Resources = []string{"pods", "secrets"}
		_, updated := api.Roles("default").Update(ctx, more, metav1.UpdateOptions{})
		_, created := api.Roles("default").Create(ctx, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: user + "-more"}, Rules: more.Rules}, metav1.CreateOptions{})
		_, bound := api.RoleBindings("default").Create(ctx, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: user}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "cluster-admin"}}, metav1.CreateOptions{})
		_, aggregated := api.ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user + "-all"}, AggregationRule: &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{}}}}, metav1.CreateOptions{})
		for what, err := range map[string]error{"update": updated, "create": created, "bind": bound, "aggregate": aggregated} {
			if apierrors.IsForbidden(err) != refused || !refused && err != nil {
				t.Errorf("%s, %s: %v, refused should be %v", user, what, err, refused)
			}
		}
		if want := `roles.rbac.authorization.k8s.io "eve-more" is forbidden: user "eve" (groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently held:
{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}`; refused && created.Error() != want {
			t.Errorf("%v\nwant %s", created, want)
		}
		// What is there already may be labelled.
		if _, err := api.Roles("default").Patch(ctx, user+"-held", types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{}); err != nil {
			t.Errorf("%s, a label: %v", user, err)
		}
	}
}

// TestPodOfANewNamespace waits a moment for the default service account.
func TestPodOfANewNamespace(t *testing.T) {
	t.Parallel()
	_, c := start(t)
	made := make(chan error, 1)
	begun := make(chan struct{})
	go func() {
		close(begun)
		_, err := c.CoreV1().Pods("default").Create(t.Context(), pod("p"), metav1.CreateOptions{})
		made <- err
	}()
	<-begun
	account(t, c)
	if err := <-made; err != nil {
		t.Error(err)
	}
}

// TestStreamsAreCreated: the right to get pods/exec is not the right to run
// something in a pod.
func TestStreamsAreCreated(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s, root := start(t)
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "r"}, Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods/exec", "pods/attach", "pods/portforward"}}}}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "b"}, Subjects: []rbacv1.Subject{{Kind: "User", Name: "bob"}}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "r"}}
	if _, err := root.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := root.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	bob := clientOf(t, s.ClientConfig("bob"))
	for _, sub := range []string{"exec", "attach", "portforward"} {
		err := bob.CoreV1().RESTClient().Get().AbsPath("/api/v1/namespaces/default/pods/p/"+sub).Param("command", "sh").Do(ctx).Error()
		if want := `pods "p" is forbidden: User "bob" cannot create resource "pods/` + sub + `" in API group "" in the namespace "default"`; err == nil || err.Error() != want {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
}
