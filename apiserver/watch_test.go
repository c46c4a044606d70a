package apiserver_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/periplus/periplus/apiserver"
	"github.com/periplus/periplus/store/mem"
)

func put(t *testing.T, maps typedcorev1.ConfigMapInterface, name string, labels map[string]string) *corev1.ConfigMap {
	t.Helper()
	made, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func relabel(t *testing.T, maps typedcorev1.ConfigMapInterface, name, body string) *corev1.ConfigMap {
	t.Helper()
	out, err := maps.Patch(t.Context(), name, types.MergePatchType, []byte(`{"metadata":{"labels":`+body+`}}`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// events reads as many events as are wanted and compares them, each written as
// "TYPE name".
func events(t *testing.T, w watch.Interface, want ...string) []watch.Event {
	t.Helper()
	var got []string
	var out []watch.Event
	for len(got) < len(want) {
		e, ok := <-w.ResultChan()
		if !ok {
			t.Fatalf("the watch ended after %q, want %q", got, want)
		}
		name := ""
		if o, ok := e.Object.(metav1.Object); ok {
			name = o.GetName()
		}
		got, out = append(got, strings.TrimSpace(fmt.Sprintf("%s %s", e.Type, name))), append(out, e)
	}
	if !slices.Equal(got, want) {
		t.Fatalf("events %q, want %q", got, want)
	}
	return out
}

// TestWatchResumes continues from any revision that was seen, without loss or
// repetition.
func TestWatchResumes(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	_, c := start(t)
	maps := c.CoreV1().ConfigMaps("kube-public")
	first := put(t, maps, "a", nil)
	second := put(t, maps, "b", nil)
	relabel(t, maps, "a", `{"x":"1"}`)
	if err := maps.Delete(ctx, "b", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for revision, want := range map[string][]string{
		first.ResourceVersion:  {"ADDED b", "MODIFIED a", "DELETED b", "ADDED c"},
		second.ResourceVersion: {"MODIFIED a", "DELETED b", "ADDED c"},
	} {
		w, err := maps.Watch(ctx, metav1.ListOptions{ResourceVersion: revision})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
		defer func() {
			all := events(t, w, want...)
			last := int64(0)
			for _, e := range all {
				rev, err := strconv.ParseInt(e.Object.(metav1.Object).GetResourceVersion(), 10, 64)
				if err != nil || rev <= last {
					t.Errorf("revision %d after %d, %v", rev, last, err)
				}
				last = rev
			}
		}()
	}
	put(t, maps, "c", nil)
}

// TestWatchOfTheForgotten answers 410 for revisions that are no longer known, to
// watches, exact lists and later pages.
func TestWatchOfTheForgotten(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	db := mem.New()
	_, c := startWith(t, func(config *apiserver.Config) { config.Store = db })
	maps := c.CoreV1().ConfigMaps("kube-public")
	for _, name := range []string{"a", "b", "c"} {
		put(t, maps, name, nil)
	}
	page, err := maps.List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	last := put(t, maps, "d", nil)
	now, err := strconv.ParseInt(last.ResourceVersion, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Compact(ctx, now); err != nil {
		t.Fatal(err)
	}
	// A server that starts now knows nothing of what was before.
	_, later := startWith(t, func(config *apiserver.Config) { config.Store = db })
	_, err = later.CoreV1().ConfigMaps("kube-public").Watch(ctx, metav1.ListOptions{ResourceVersion: page.ResourceVersion})
	if !apierrors.IsResourceExpired(err) || !strings.Contains(err.Error(), "too old resource version: "+page.ResourceVersion+" (") {
		t.Errorf("watch from the past: %v, want Expired", err)
	}
	_, err = maps.List(ctx, metav1.ListOptions{ResourceVersion: page.ResourceVersion, ResourceVersionMatch: metav1.ResourceVersionMatchExact})
	if !apierrors.IsResourceExpired(err) {
		t.Errorf("list of the past: %v, want Expired", err)
	}
	_, err = maps.List(ctx, metav1.ListOptions{Limit: 1, Continue: page.Continue})
	if !apierrors.IsResourceExpired(err) {
		t.Fatalf("second page: %v, want Expired", err)
	}
	// The error offers a token for the rest of the present.
	again := err.(apierrors.APIStatus).Status().Continue
	rest, err := maps.List(ctx, metav1.ListOptions{Continue: again})
	if err != nil || len(rest.Items) == 0 || rest.Items[len(rest.Items)-1].Name != "d" {
		t.Fatalf("with the offered token: %v, %v", rest, err)
	}
}

// TestWatchWithInitialEvents streams the present as events, ends them with an
// annotated bookmark and goes on.
func TestWatchWithInitialEvents(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	_, c := start(t)
	maps := c.CoreV1().ConfigMaps("kube-public")
	put(t, maps, "a", nil)
	put(t, maps, "b", nil)
	yes := true
	options := metav1.ListOptions{SendInitialEvents: &yes, AllowWatchBookmarks: true, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, LabelSelector: "kind!=system"}
	w, err := maps.Watch(ctx, options)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	names := []string{}
	for e := range w.ResultChan() {
		o := e.Object.(metav1.Object)
		if e.Type != watch.Bookmark {
			names = append(names, o.GetName())
			continue
		}
		if o.GetAnnotations()[metav1.InitialEventsAnnotationKey] != "true" || o.GetResourceVersion() == "" {
			t.Errorf("bookmark with annotations %v at revision %q", o.GetAnnotations(), o.GetResourceVersion())
		}
		break
	}
	if !slices.Contains(names, "a") || !slices.Contains(names, "b") {
		t.Errorf("initial events %q lack a or b", names)
	}
	put(t, maps, "c", nil)
	events(t, w, "ADDED c")

	no := false
	for name, bad := range map[string]metav1.ListOptions{
		"no match":  {SendInitialEvents: &yes, AllowWatchBookmarks: true},
		"match":     {ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan},
		"exact":     {SendInitialEvents: &no, ResourceVersion: "1", ResourceVersionMatch: metav1.ResourceVersionMatchExact},
		"field":     {FieldSelector: "data.x=1"},
		"label":     {LabelSelector: "!!"},
		"revision":  {ResourceVersion: "x"},
		"negative":  {ResourceVersion: "-1"},
		"bad match": {ResourceVersion: "1", ResourceVersionMatch: "About"},
	} {
		if w, err := maps.Watch(ctx, bad); !apierrors.IsBadRequest(err) && !apierrors.IsInvalid(err) {
			t.Errorf("%s: %v, want a refusal", name, err)
			if err == nil {
				w.Stop()
			}
		}
	}
}

// TestWatchWithSelectors shows an object that begins to match as added and one
// that stops as deleted, under the revision of the change.
func TestWatchWithSelectors(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	_, c := start(t)
	maps := c.CoreV1().ConfigMaps("kube-public")
	made := put(t, maps, "a", nil)
	w, err := maps.Watch(ctx, metav1.ListOptions{ResourceVersion: made.ResourceVersion, LabelSelector: "color=red"})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	byName, err := maps.Watch(ctx, metav1.ListOptions{ResourceVersion: made.ResourceVersion, FieldSelector: "metadata.name=b"})
	if err != nil {
		t.Fatal(err)
	}
	defer byName.Stop()
	relabel(t, maps, "a", `{"color":"red"}`)
	relabel(t, maps, "a", `{"color":"red","size":"L"}`)
	gone := relabel(t, maps, "a", `{"color":"blue"}`)
	put(t, maps, "b", map[string]string{"color": "red"})
	put(t, maps, "c", nil)
	if err := maps.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "color"}); err != nil {
		t.Fatal(err)
	}
	got := events(t, w, "ADDED a", "MODIFIED a", "DELETED a", "ADDED b", "DELETED b")
	deleted := got[2].Object.(*corev1.ConfigMap)
	if deleted.Labels["color"] != "red" || deleted.ResourceVersion != gone.ResourceVersion {
		t.Errorf("deleted with %v at %s; want the last state that matched, at %s", deleted.Labels, deleted.ResourceVersion, gone.ResourceVersion)
	}
	events(t, byName, "ADDED b", "DELETED b")

	pods := c.CoreV1().Pods("default")
	account(t, c)
	byNode, err := pods.Watch(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=n1,status.phase!=Failed"})
	if err != nil {
		t.Fatal(err)
	}
	defer byNode.Stop()
	p := pod("p")
	if _, err := pods.Create(ctx, p, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	bind := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Target: corev1.ObjectReference{Kind: "Node", Name: "n1"}}
	if err := pods.Bind(ctx, bind, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := pods.Patch(ctx, "p", types.MergePatchType, []byte(`{"status":{"phase":"Failed"}}`), metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	events(t, byNode, "ADDED p", "DELETED p")
}

// account makes the account that pods run under.
func account(t *testing.T, c *kubernetes.Clientset) {
	t.Helper()
	if _, err := c.CoreV1().ServiceAccounts("default").Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// pod returns one that the default service account may run.
func pod(name string) *corev1.Pod {
	no := false
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{
		AutomountServiceAccountToken: &no, ServiceAccountName: "default",
		Containers: []corev1.Container{{Name: "c", Image: "busybox"}},
	}}
}

// stream opens a watch as bytes.
func stream(t *testing.T, c *kubernetes.Clientset, ctx context.Context, path, accept string) io.ReadCloser {
	t.Helper()
	body, err := c.CoreV1().RESTClient().Get().AbsPath(path).Param("watch", "true").Param("resourceVersion", "0").SetHeader("Accept", accept).Stream(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// TestWatchMediaTypes reads the same change in every form.
func TestWatchMediaTypes(t *testing.T) {
	t.Parallel()
	_, c := start(t)
	maps := c.CoreV1().ConfigMaps("kube-public")
	put(t, maps, "a", nil)
	const path = "/api/v1/namespaces/kube-public/configmaps"
	for accept, check := range map[string]func(e line) string{
		"application/json": func(e line) string { return e.Object.Kind + " " + e.Object.Metadata.Name },
		"application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1": func(e line) string {
			return e.Object.Kind + " " + e.Object.Metadata.Name
		},
		"application/json;as=Table;v=v1;g=meta.k8s.io,application/json": func(e line) string {
			return e.Object.Kind + " " + e.Object.Rows[0].Object.Metadata.Name
		},
	} {
		body := stream(t, c, t.Context(), path, accept)
		defer body.Close()
		lines := bufio.NewReader(body)
		for {
			text, err := lines.ReadBytes('\n')
			if err != nil {
				t.Fatal(err)
			}
			var e line
			if err := json.Unmarshal(text, &e); err != nil {
				t.Fatalf("%s: %v in %s", accept, err, text)
			}
			kind, name, _ := strings.Cut(check(e), " ")
			if name != "a" {
				continue // the root certificate
			}
			want := map[bool]string{true: "Table", false: "ConfigMap"}[strings.Contains(accept, "Table")]
			if strings.Contains(accept, "Partial") {
				want = "PartialObjectMetadata"
			}
			if e.Type != "ADDED" || kind != want {
				t.Errorf("%s: %s of a %s, want ADDED of a %s", accept, e.Type, kind, want)
			}
			break
		}
	}
	// What nothing can be made of is refused before the stream begins.
	_, err := c.CoreV1().RESTClient().Get().AbsPath(path).Param("watch", "1").SetHeader("Accept", "text/html").Stream(t.Context())
	if s, ok := err.(apierrors.APIStatus); !ok || s.Status().Code != http.StatusNotAcceptable {
		t.Errorf("text/html: %v, want 406", err)
	}
}

type line struct {
	Type   string
	Object struct {
		Kind     string
		Metadata metav1.ObjectMeta
		Rows     []struct {
			Object struct{ Metadata metav1.ObjectMeta }
		}
	}
}

// TestDeletedObjectsOfWatchesAreTheLast: informers rely on the last state.
func TestDeletedObjectsOfWatchesAreTheLast(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	_, c := start(t)
	maps := c.CoreV1().ConfigMaps("kube-public")
	made := put(t, maps, "a", map[string]string{"last": "yes"})
	w, err := maps.Watch(ctx, metav1.ListOptions{ResourceVersion: made.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	if err := maps.Delete(ctx, "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	e := events(t, w, "DELETED a")[0]
	o := e.Object.(*corev1.ConfigMap)
	if o.Labels["last"] != "yes" || o.ResourceVersion == made.ResourceVersion || o.UID != made.UID {
		t.Errorf("deleted object %+v: want the last state under a newer revision", o.ObjectMeta)
	}
}
