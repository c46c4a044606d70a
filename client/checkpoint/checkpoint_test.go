package checkpoint_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/cache"

	"github.com/periplus/periplus/client/checkpoint"
)

// limit bounds a wait that takes milliseconds.
const limit = time.Minute

var errDown = errors.New("connection refused")

// api is a server with pods, which may be down.
type api struct {
	mu      sync.Mutex
	err     error
	pods    []corev1.Pod
	version string
	watcher *watch.RaceFreeFakeWatcher
}

func (a *api) set(err error, version string, pods ...corev1.Pod) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.err, a.version, a.pods, a.watcher = err, version, pods, nil
}

func (a *api) List(o metav1.ListOptions) (runtime.Object, error) {
	return a.ListWithContext(context.Background(), o)
}

func (a *api) ListWithContext(context.Context, metav1.ListOptions) (runtime.Object, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.err != nil {
		return nil, a.err
	}
	return &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: a.version}, Items: a.pods}, nil
}

func (a *api) Watch(o metav1.ListOptions) (watch.Interface, error) {
	return a.WatchWithContext(context.Background(), o)
}

func (a *api) WatchWithContext(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.err != nil {
		return nil, a.err
	}
	if o.ResourceVersion != a.version {
		return nil, apierrors.NewResourceExpired("watch from " + o.ResourceVersion)
	}
	a.watcher = watch.NewRaceFreeFake()
	return a.watcher, nil
}

func (a *api) watched() *watch.RaceFreeFakeWatcher {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.watcher
}

func pod(name, version string) corev1.Pod {
	return corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: name, UID: types.UID("uid-" + name), ResourceVersion: version, Labels: map[string]string{"version": version},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "somebody"}},
	}}
}

func open(t *testing.T, path string) *checkpoint.Store {
	t.Helper()
	s, err := checkpoint.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func pods(s *checkpoint.Store, a *api) *checkpoint.Remembered {
	return s.Remember(checkpoint.List{Bucket: "pods", New: func() checkpoint.Object { return &corev1.Pod{} }}, a)
}

// life runs an informer until the test says so; its events come in the channel.
func life(t *testing.T, r *checkpoint.Remembered) (events <-chan string, end func()) {
	t.Helper()
	out := make(chan string, 100)
	i := checkpoint.Informer(r, &corev1.Pod{})
	say := func(what string, obj any) {
		p := obj.(*corev1.Pod)
		out <- what + " " + p.Name + "@" + p.ResourceVersion
	}
	if _, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { say("add", obj) },
		UpdateFunc: func(_, obj any) { say("update", obj) },
		DeleteFunc: func(obj any) { say("delete", obj) },
	}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { i.RunWithContext(ctx) })
	end = sync.OnceFunc(func() { cancel(); running.Wait() })
	t.Cleanup(end)
	return out, end
}

// expect takes as many events as it names, in any order.
func expect(t *testing.T, events <-chan string, want ...string) {
	t.Helper()
	left := map[string]bool{}
	for _, w := range want {
		left[w] = true
	}
	timeout := time.After(limit)
	for len(left) > 0 {
		select {
		case e := <-events:
			if !left[e] {
				t.Fatalf("%q is not expected; outstanding: %v", e, left)
			}
			delete(left, e)
		case <-timeout:
			t.Fatalf("outstanding: %v", left)
		}
	}
}

func TestALifeWithoutTheServer(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state", "checkpoints.db")
	a := &api{}

	// 1. With the server.
	s := open(t, path)
	a.set(nil, "10", pod("a", "1"), pod("b", "2"), pod("e", "3"))
	events, end := life(t, pods(s, a))
	expect(t, events, "add a@1", "add b@2", "add e@3")
	c := pod("c", "11")
	waitWatch(t, a).Add(&c)
	gone := pod("a", "12")
	a.watched().Delete(&gone)
	expect(t, events, "add c@11", "delete a@12")
	end()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}

	// 2. Without: what was known last.
	a.set(errDown, "")
	s = open(t, path)
	r := pods(s, a)
	events, end = life(t, r)
	expect(t, events, "add b@2", "add c@11", "add e@3")
	if _, err := r.Live(closed(t)); err == nil {
		t.Error("the API counts as known")
	}

	// 3. It comes back: only what differs is an event.
	other := pod("e", "20")
	other.UID = "another"
	a.set(nil, "21", pod("b", "2"), pod("d", "19"), other)
	expect(t, events, "delete c@11", "delete e@3", "add d@19", "add e@20")
	live, err := r.Live(t.Context())
	if err != nil || len(live) != 3 {
		t.Errorf("live: %v %v", live, err)
	}
	// And the watch goes on from there.
	b := pod("b", "22")
	waitWatch(t, a).Modify(&b)
	expect(t, events, "update b@22")
	end()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	// 4. A third life knows that, too.
	a.set(errDown, "")
	events, _ = life(t, pods(open(t, path), a))
	expect(t, events, "add b@22", "add d@19", "add e@20")
}

// waitWatch returns the API's watch as soon as there is one.
func waitWatch(t *testing.T, a *api) *watch.RaceFreeFakeWatcher {
	t.Helper()
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	timeout := time.After(limit)
	for {
		if w := a.watched(); w != nil {
			return w
		}
		select {
		case <-again.C:
		case <-timeout:
			t.Fatal("nobody watches")
		}
	}
}

// closed is a context that has ended.
func closed(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

func TestWhatCountsAsAway(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "checkpoints.db")
	a := &api{}
	a.set(nil, "1", pod("a", "1"))
	s := open(t, path)
	if _, err := pods(s, a).ListWithContext(t.Context(), metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	gr := corev1.Resource("pods")
	for name, c := range map[string]struct {
		err  error
		kept bool
	}{
		"no connection":     {errDown, true},
		"starting":          {apierrors.NewServiceUnavailable("starting"), true},
		"too busy":          {apierrors.NewTooManyRequests("later", 1), true},
		"unknown to it":     {apierrors.NewUnauthorized("who?"), true},
		"not allowed":       {apierrors.NewForbidden(gr, "", errors.New("no")), false},
		"no such resource":  {apierrors.NewNotFound(gr, ""), false},
		"broken within":     {apierrors.NewInternalError(errors.New("etcd")), true},
		"a request refused": {apierrors.NewBadRequest("what?"), false},
	} {
		a.set(c.err, "")
		_, err := pods(s, a).ListWithContext(t.Context(), metav1.ListOptions{})
		if c.kept != (err == nil) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// What was never listed is not known to be empty.
	a.set(errDown, "")
	never := s.Remember(checkpoint.List{Bucket: "never", New: func() checkpoint.Object { return &corev1.Pod{} }}, a)
	if _, err := never.ListWithContext(t.Context(), metav1.ListOptions{}); !errors.Is(err, errDown) {
		t.Errorf("never listed: %v", err)
	}
}

func TestDamage(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "checkpoints.db")
	a := &api{}
	a.set(nil, "1", pod("a", "1"))
	s := open(t, path)
	if _, err := pods(s, a).ListWithContext(t.Context(), metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, bytes.Repeat([]byte("x"), 40000), 0o600); err != nil {
		t.Fatal(err)
	}
	a.set(errDown, "")
	if _, err := pods(open(t, path), a).ListWithContext(t.Context(), metav1.ListOptions{}); !errors.Is(err, errDown) {
		t.Errorf("after damage: %v", err)
	}
	if _, err := os.Stat(path + ".damaged"); err != nil {
		t.Error(err)
	}
}

// answers is a transport that answers with one body, or an error.
type answers struct {
	code int
	body string
	err  error
	got  string
}

func (a *answers) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		data, _ := io.ReadAll(r.Body)
		a.got = string(data)
	}
	if a.err != nil {
		return nil, a.err
	}
	return &http.Response{StatusCode: a.code, Header: http.Header{"Content-Type": {"text/x"}}, Body: io.NopCloser(bytes.NewReader([]byte(a.body))), Request: r}, nil
}

func TestReads(t *testing.T) {
	t.Parallel()
	s := open(t, filepath.Join(t.TempDir(), "checkpoints.db"))
	server := &answers{}
	client := &http.Client{Transport: s.Reads(server, true)}
	do := func(method, path, body string) (string, error) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, "http://api"+path, bytes.NewReader([]byte(body)))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(r)
		if err != nil {
			return "", err
		}
		defer resp.Body.Close()
		data, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.Header.Get("Content-Type") + ":" + string(data), nil
	}
	token := func(uid string) string {
		data, err := runtime.Encode(scheme.Codecs.LegacyCodec(authenticationv1.SchemeGroupVersion), &authenticationv1.TokenRequest{
			Spec: authenticationv1.TokenRequestSpec{BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: "Pod", UID: types.UID(uid)}},
		})
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	const (
		claim  = "/api/v1/namespaces/ns/persistentvolumeclaims/data"
		driver = "/apis/storage.k8s.io/v1/csidrivers/local"
		secret = "/api/v1/namespaces/ns/secrets/key"
		tokens = "/api/v1/namespaces/ns/serviceaccounts/default/token"
	)
	kept := func(method, path, body string) bool {
		t.Helper()
		server.code, server.body, server.err = 200, "what "+path+" is", nil
		live, err := do(method, path, body)
		if err != nil {
			t.Fatal(err)
		}
		if body != "" && server.got != body {
			t.Errorf("%s: the server got %q", path, server.got)
		}
		server.err = errDown
		again, err := do(method, path, body)
		if err == nil && again != live {
			t.Errorf("%s: %q became %q", path, live, again)
		}
		return err == nil
	}
	for _, c := range []struct {
		method, path, body string
		kept               bool
	}{
		{"GET", claim, "", true},
		{"GET", driver, "", true},
		{"GET", secret, "", false},
		{"GET", claim + "?watch=1", "", false},
		{"PUT", claim, "x", false},
		{"POST", tokens, token("one"), true},
		{"POST", tokens, token("two"), true},
		{"POST", tokens, "nonsense", false},
	} {
		if got := kept(c.method, c.path, c.body); got != c.kept {
			t.Errorf("%s %s kept: %t", c.method, c.path, got)
		}
	}
	// What the API does not have any more is not kept either.
	server.code, server.err = 404, nil
	if _, err := do("GET", driver, ""); err != nil {
		t.Fatal(err)
	}
	server.err = errDown
	if _, err := do("GET", driver, ""); err == nil {
		t.Error("a driver that is gone was kept")
	}
	// Nor what only pods that are gone have needed.
	s.Statuses().Save("one", &corev1.PodStatus{Phase: corev1.PodSucceeded})
	s.Statuses().Save("two", &corev1.PodStatus{Phase: corev1.PodSucceeded})
	s.KeepFor([]*corev1.Pod{{ObjectMeta: metav1.ObjectMeta{UID: "two", Namespace: "ns"}}}, nil)
	if _, err := do("GET", claim, ""); err == nil {
		t.Error("a claim without a pod was kept")
	}
	if _, err := do("POST", tokens, token("one")); err == nil {
		t.Error("the token of a pod that is gone was kept")
	}
	if _, err := do("POST", tokens, token("two")); err != nil {
		t.Errorf("the token of a pod: %v", err)
	}
	if s.Statuses().Load("one") != nil || s.Statuses().Load("two").Phase != corev1.PodSucceeded {
		t.Error("statuses")
	}
}
