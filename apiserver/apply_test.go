package apiserver_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

const webDeployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: web, image: "web:1", ports: [{containerPort: 80}]}
`

func owners(entries []metav1.ManagedFieldsEntry) string {
	var out []string
	for _, e := range entries {
		out = append(out, strings.TrimSpace(fmt.Sprint(e.Manager, " ", e.Operation, " ", e.APIVersion, " ", e.Subresource)))
	}
	return strings.Join(out, "; ")
}

// TestServerSideApply of a built-in kind: creation, owners, conflicts, force, removal.
func TestServerSideApply(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s, c := start(t)
	api := c.AppsV1().Deployments("default")
	apply := func(manager, body string, force bool) (*appsv1.Deployment, error) {
		o := metav1.PatchOptions{FieldManager: manager}
		if force {
			o.Force = &force
		}
		return api.Patch(ctx, "web", types.ApplyPatchType, []byte(body), o)
	}
	made, err := apply("alice", webDeployment, false)
	if err != nil {
		t.Fatal(err)
	}
	if got := owners(made.ManagedFields); made.UID == "" || *made.Spec.Replicas != 2 || made.Spec.Template.Spec.RestartPolicy != "Always" || got != "alice Apply apps/v1" {
		t.Fatalf("created: %q %+v", got, made)
	}
	if fields := made.ManagedFields[0].FieldsV1.GetRawString(); !strings.Contains(fields, `"k:{\"name\":\"web\"}"`) || !strings.Contains(fields, `"k:{\"containerPort\":80,\"protocol\":\"TCP\"}"`) || strings.Contains(fields, "f:status") {
		t.Errorf("fields: %s", fields)
	}
	again, err := apply("alice", webDeployment, false)
	if err != nil || again.ResourceVersion != made.ResourceVersion {
		t.Errorf("the same again: revision %s, %v; want %s", again.ResourceVersion, err, made.ResourceVersion)
	}
	// Another manager.
	const three = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},"spec":{"replicas":3}}`
	_, err = apply("bob", three, false)
	if want := `Apply failed with 1 conflict: conflict with "alice": .spec.replicas`; !apierrors.IsConflict(err) || err.Error() != want {
		t.Errorf("conflict: %v\nwant %s", err, want)
	}
	forced, err := apply("bob", three, true)
	if err != nil || *forced.Spec.Replicas != 3 || owners(forced.ManagedFields) != "alice Apply apps/v1; bob Apply apps/v1" {
		t.Errorf("force: %v %q", err, owners(forced.ManagedFields))
	}
	// Other writes are noted with who made them.
	if _, err := api.Patch(ctx, "web", types.MergePatchType, []byte(`{"metadata":{"annotations":{"a":"b"}}}`), metav1.PatchOptions{FieldManager: "carol"}); err != nil {
		t.Fatal(err)
	}
	scale, err := api.GetScale(ctx, "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	scale.Spec.Replicas = 4
	if _, err := api.UpdateScale(ctx, "web", scale, metav1.UpdateOptions{FieldManager: "hpa"}); err != nil {
		t.Fatal(err)
	}
	got, err := api.Get(ctx, "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got.Status.ObservedGeneration = 1
	if got, err = api.UpdateStatus(ctx, got, metav1.UpdateOptions{FieldManager: "controller"}); err != nil {
		t.Fatal(err)
	}
	if want := "alice Apply apps/v1; carol Update apps/v1; controller Update apps/v1 status; hpa Update apps/v1 scale"; sortedOwners(got.ManagedFields) != want {
		t.Errorf("owners: %s\nwant %s", sortedOwners(got.ManagedFields), want)
	}
	_, err = apply("bob", three, false)
	if want := `Apply failed with 1 conflict: conflict with "hpa" with subresource "scale" using apps/v1: .spec.replicas`; err == nil || err.Error() != want {
		t.Errorf("conflict: %v\nwant %s", err, want)
	}
	// What is no longer applied goes.
	less, err := apply("alice", strings.Replace(strings.Replace(webDeployment, "  replicas: 2\n", "", 1), ", labels: {app: web}}\nspec", "}\nspec", 1), false)
	if err != nil || len(less.Labels) != 0 || *less.Spec.Replicas != 4 {
		t.Errorf("removal: %v, %+v", err, less.ObjectMeta)
	}
	// What is refused.
	for _, test := range []struct{ name, manager, body, want string }{
		{"manager", "", three, `PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch`},
		{"unknown", "bob", strings.Replace(three, "replicas", "replicaz", 1), `.spec.replicaz: field not declared in schema`},
		{"name", "bob", strings.NewReplacer(`"web"`, `"other"`, "3", "4").Replace(three), `the name of the object (other) does not match the name on the URL (web)`},
		{"version", "bob", strings.Replace(three, "apps/v1", "apps/v2", 1), `invalid object type: apps/v2, Kind=Deployment`},
		{"managed fields", "bob", strings.Replace(three, `"name":"web"`, `"name":"web","managedFields":[{}]`, 1), `metadata.managedFields must be nil`},
	} {
		if _, err := apply(test.manager, test.body, false); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v\nwant %s", test.name, err, test.want)
		}
	}
	// A dry run stores nothing.
	if dry, err := api.Patch(ctx, "dry", types.ApplyPatchType, []byte(strings.Replace(webDeployment, "name: web, labels", "name: dry, labels", 1)), metav1.PatchOptions{FieldManager: "alice", DryRun: []string{"All"}}); err != nil || dry.Name != "dry" {
		t.Error(err)
	}
	if _, err := api.Get(ctx, "dry", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Error(err)
	}
	// Who may patch and not create makes nothing.
	patcher := clientOf(t, s.ClientConfig("patcher"))
	allow(t, c, "patcher", "patch", "apps", "deployments")
	_, err = patcher.AppsV1().Deployments("default").Patch(ctx, "new", types.ApplyPatchType, []byte(strings.Replace(webDeployment, "name: web, labels", "name: new, labels", 1)), metav1.PatchOptions{FieldManager: "p"})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `cannot create resource "deployments"`) {
		t.Errorf("without the right to create: %v", err)
	}
}

// TestApplyTakesOver: an object that was made otherwise, then applied.
func TestApplyTakesOver(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	_, c := start(t)
	maps := c.CoreV1().ConfigMaps("default")
	put(t, maps, "a", map[string]string{"k": "1", "l": "1"})
	// Nobody owns anything, as in objects from before there were owners.
	reset, err := maps.Patch(ctx, "a", types.MergePatchType, []byte(`{"metadata":{"managedFields":[{}]}}`), metav1.PatchOptions{})
	if err != nil || reset.ManagedFields != nil {
		t.Fatalf("reset: %v, %v", reset, err)
	}
	body := []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","labels":{"k":"2"}}}`)
	_, err = maps.Patch(ctx, "a", types.ApplyPatchType, body, metav1.PatchOptions{FieldManager: "m"})
	if want := `Apply failed with 1 conflict: conflict with "before-first-apply" using v1: .metadata.labels.k`; !apierrors.IsConflict(err) || err.Error() != want {
		t.Errorf("conflict: %v\nwant %s", err, want)
	}
	// kubectl takes over what its client-side form has applied before.
	last, _ := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a", "labels": map[string]any{"k": "1"}}})
	note, _ := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{"kubectl.kubernetes.io/last-applied-configuration": string(last)}}})
	if _, err := maps.Patch(ctx, "a", types.MergePatchType, note, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	got, err := maps.Patch(ctx, "a", types.ApplyPatchType, body, metav1.PatchOptions{FieldManager: "kubectl"})
	if err != nil || got.Labels["k"] != "2" || got.Labels["l"] != "1" {
		t.Errorf("%v %v", got, err)
	}
}

// TestApplyAfterClientSideApply: kubectl owns what it has applied, not what others
// have set since; it moves its fields to the entry of its server-side apply.
func TestApplyAfterClientSideApply(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	_, c := start(t)
	api := c.AppsV1().Deployments("default")
	configuration, err := yaml.YAMLToJSON([]byte(strings.Replace(webDeployment, "  replicas: 2\n", "", 1)))
	if err != nil {
		t.Fatal(err)
	}
	d := &appsv1.Deployment{}
	if err := json.Unmarshal(configuration, d); err != nil {
		t.Fatal(err)
	}
	d.Annotations = map[string]string{"kubectl.kubernetes.io/last-applied-configuration": string(configuration)}
	if _, err := api.Create(ctx, d, metav1.CreateOptions{FieldManager: "kubectl-client-side-apply"}); err != nil {
		t.Fatal(err)
	}
	if _, err := api.Patch(ctx, "web", types.MergePatchType, []byte(`{"spec":{"replicas":5}}`), metav1.PatchOptions{FieldManager: "scaler"}, "scale"); err != nil {
		t.Fatal(err)
	}
	got, err := api.Patch(ctx, "web", types.ApplyPatchType, configuration, metav1.PatchOptions{FieldManager: "kubectl"})
	if err != nil {
		t.Fatal(err)
	}
	owned := map[string]string{}
	for _, e := range got.ManagedFields {
		owned[e.Manager] = e.FieldsV1.GetRawString()
	}
	if client := owned["kubectl-client-side-apply"]; !strings.Contains(client, "last-applied") || strings.Contains(client, "f:replicas") || !strings.Contains(client, "f:image") {
		t.Errorf("kubectl-client-side-apply owns %s", client)
	}
	if scaler := owned["scaler"]; scaler != `{"f:spec":{"f:replicas":{}}}` {
		t.Errorf("scaler owns %s", scaler)
	}
	if *got.Spec.Replicas != 5 {
		t.Errorf("%d replicas", *got.Spec.Replicas)
	}
}

// TestApplyOfCustomResources merges lists by the schema's keys, and over versions.
func TestApplyOfCustomResources(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s, _ := start(t)
	c := dynamicClient(t, s)
	define(t, c, crontabs)
	tabs := c.Resource(cronTabs).Namespace("default")
	made, err := tabs.Apply(ctx, "a", cronTab(t, "a", `{cronSpec: "* * * * *", replicas: 2}`), metav1.ApplyOptions{FieldManager: "alice"})
	if err != nil {
		t.Fatal(err)
	}
	if image, _, _ := nested(made.Object, "spec", "image"); image != "busybox" || owners(made.GetManagedFields()) != "alice Apply stable.example.com/v1" {
		t.Errorf("%v", made.Object)
	}
	_, err = tabs.Apply(ctx, "a", cronTab(t, "a", `{replicas: 3}`), metav1.ApplyOptions{FieldManager: "bob"})
	if want := `Apply failed with 1 conflict: conflict with "alice": .spec.replicas`; !apierrors.IsConflict(err) || err.Error() != want {
		t.Errorf("%v", err)
	}
	old := c.Resource(cronTabs.GroupResource().WithVersion("v1beta1")).Namespace("default")
	in := cronTab(t, "a", `{cronSpec: "1 * * * *"}`)
	in.SetAPIVersion("stable.example.com/v1beta1")
	_, err = old.Apply(ctx, "a", in, metav1.ApplyOptions{FieldManager: "bob"})
	if want := `Apply failed with 1 conflict: conflict with "alice": .spec.cronSpec`; err == nil || err.Error() != want {
		t.Errorf("over versions: %v", err)
	}
	unknown := cronTab(t, "a", `{cronSpec: "* * * * *", bogus: 2}`)
	if _, err = tabs.Apply(ctx, "a", unknown, metav1.ApplyOptions{FieldManager: "alice"}); err == nil || !strings.Contains(err.Error(), ".spec.bogus: field not declared in schema") {
		t.Errorf("unknown: %v", err)
	}
	status := cronTab(t, "a", `{}`)
	delete(status.Object, "spec")
	status.Object["status"] = map[string]any{"replicas": int64(1)}
	got, err := tabs.ApplyStatus(ctx, "a", status, metav1.ApplyOptions{FieldManager: "controller"})
	if n, _, _ := nested(got.Object, "status", "replicas"); err != nil || n != int64(1) || sortedOwners(got.GetManagedFields()) != "alice Apply stable.example.com/v1; controller Apply stable.example.com/v1 status" {
		t.Errorf("status: %v %v", got, err)
	}
}
