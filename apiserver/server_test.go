package apiserver_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"log/slog"
	"net"
	"net/netip"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/periplus/periplus/apiserver"
	"github.com/periplus/periplus/client"
	"github.com/periplus/periplus/store/mem"
)

// start runs a server over a store in memory and returns a client that may do everything.
func start(t testing.TB) (*apiserver.Server, *kubernetes.Clientset) {
	t.Helper()
	return startWith(t, func(*apiserver.Config) {})
}

// startWith is start with further settings and listeners.
func startWith(t testing.TB, set func(*apiserver.Config), listeners ...net.Listener) (*apiserver.Server, *kubernetes.Clientset) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	config := apiserver.Config{
		Store: mem.New(), Version: "v1.37.2", ServiceAccountKey: key,
		ServiceCIDRs: []netip.Prefix{netip.MustParsePrefix("10.43.0.0/16")},
		Advertise:    netip.MustParseAddrPort("192.0.2.1:6443"), Log: slog.New(slog.DiscardHandler),
	}
	set(&config)
	s, err := apiserver.New(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx, listeners...) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	select {
	case <-s.Ready():
	case err := <-done:
		done <- err
		t.Fatal(err)
	}
	c, err := kubernetes.NewForConfig(s.ClientConfig("test", "system:masters"))
	if err != nil {
		t.Fatal(err)
	}
	return s, c
}

func TestLifeOfAnObject(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	_, c := start(t)
	maps := c.CoreV1().ConfigMaps("default")
	made, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: map[string]string{"k": "1"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if made.UID == "" || made.ResourceVersion == "" || made.CreationTimestamp.IsZero() {
		t.Fatalf("created object lacks system fields: %+v", made.ObjectMeta)
	}
	if _, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		t.Fatalf("second create: %v, want AlreadyExists", err)
	}
	w, err := maps.Watch(ctx, metav1.ListOptions{ResourceVersion: made.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	stale := made.DeepCopy()
	made.Data["k"] = "2"
	updated, err := maps.Update(ctx, made, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	stale.Data["k"] = "3"
	if _, err := maps.Update(ctx, stale, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Fatalf("stale update: %v, want Conflict", err)
	}
	for _, p := range []struct {
		kind types.PatchType
		body string
	}{
		{types.MergePatchType, `{"data":{"merge":"x"}}`},
		{types.StrategicMergePatchType, `{"data":{"strategic":"x"}}`},
		{types.JSONPatchType, `[{"op":"add","path":"/data/json","value":"x"}]`},
	} {
		if _, err := maps.Patch(ctx, "a", p.kind, []byte(p.body), metav1.PatchOptions{}); err != nil {
			t.Fatalf("%s: %v", p.kind, err)
		}
	}
	got, err := maps.Get(ctx, "a", metav1.GetOptions{})
	if err != nil || len(got.Data) != 4 || got.Data["k"] != "2" {
		t.Fatalf("after the patches: %v, %v", got.Data, err)
	}
	if err := maps.Delete(ctx, "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	want := []watch.EventType{watch.Modified, watch.Modified, watch.Modified, watch.Modified, watch.Deleted}
	for i, kind := range want {
		e := <-w.ResultChan()
		if e.Type != kind {
			t.Fatalf("event %d is %s, want %s", i, e.Type, kind)
		}
		if i == 0 && e.Object.(*corev1.ConfigMap).ResourceVersion != updated.ResourceVersion {
			t.Fatalf("the event has revision %s, the answer %s", e.Object.(*corev1.ConfigMap).ResourceVersion, updated.ResourceVersion)
		}
	}
}

func TestListsInPagesAndWithSelectors(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	_, c := start(t)
	maps := c.CoreV1().ConfigMaps("default")
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"vowel": map[bool]string{true: "yes", false: "no"}[name == "a" || name == "e"]}}}
		if _, err := maps.Create(ctx, obj, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	first, err := maps.List(ctx, metav1.ListOptions{Limit: 2})
	if err != nil || len(first.Items) != 2 || first.Continue == "" {
		t.Fatalf("first page: %d items, continue %q, %v", len(first.Items), first.Continue, err)
	}
	if err := maps.Delete(ctx, "e", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	rest, err := maps.List(ctx, metav1.ListOptions{Continue: first.Continue, Limit: 10})
	if err != nil || len(rest.Items) < 3 {
		t.Fatalf("the rest of a consistent list has %d items, %v; want what was there at the first page", len(rest.Items), err)
	}
	vowels, err := maps.List(ctx, metav1.ListOptions{LabelSelector: "vowel in (yes)"})
	if err != nil || len(vowels.Items) != 1 || vowels.Items[0].Name != "a" {
		t.Fatalf("by label: %v, %v", vowels.Items, err)
	}
	byName, err := maps.List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=b"})
	if err != nil || len(byName.Items) != 1 {
		t.Fatalf("by name: %v, %v", byName.Items, err)
	}
	if _, err := maps.List(ctx, metav1.ListOptions{FieldSelector: "data.k=b"}); !apierrors.IsBadRequest(err) {
		t.Fatalf("unknown field: %v, want BadRequest", err)
	}
}

func TestScaleAndSharedInformer(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s, c := start(t)
	factory := client.NewFactory(c, s.Source())
	lister := factory.Apps().V1().Deployments().Lister()
	informer := factory.Apps().V1().Deployments().Informer()
	factory.StartWithContext(ctx)
	factory.WaitForCacheSyncWithContext(ctx)
	labels := map[string]string{"app": "web"}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web"}}}},
	}}
	deployments := c.AppsV1().Deployments("default")
	if _, err := deployments.Create(ctx, d, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	scale, err := deployments.GetScale(ctx, "web", metav1.GetOptions{})
	if err != nil || scale.Spec.Replicas != 1 {
		t.Fatalf("scale %+v, %v; want the default of 1", scale, err)
	}
	scale.Spec.Replicas = 3
	if _, err := deployments.UpdateScale(ctx, "web", scale, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	got, err := deployments.Get(ctx, "web", metav1.GetOptions{})
	if err != nil || *got.Spec.Replicas != 3 || got.Generation != 2 {
		t.Fatalf("replicas %d, generation %d, %v", *got.Spec.Replicas, got.Generation, err)
	}
	seen := make(chan *appsv1.Deployment, 8)
	if _, err := informer.AddEventHandler(handler(seen)); err != nil {
		t.Fatal(err)
	}
	for d := range seen {
		if *d.Spec.Replicas == 3 {
			break
		}
	}
	cached, err := lister.Deployments("default").Get("web")
	if err != nil || cached.Kind != "Deployment" {
		t.Fatalf("%+v, %v", cached, err)
	}
}
