package apiserver_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/periplus/periplus/apiserver"
	"github.com/periplus/periplus/store"
	"github.com/periplus/periplus/store/mem"
)

// A moody store fails, hangs or refuses what is large, as it is told to.
type moody struct {
	store.Store
	down atomic.Bool
	most atomic.Int64 // bytes of a value; 0: any

	mu   sync.Mutex
	hold func(key string) bool // writes that hang until released; nil: none
	held chan string           // keys of writes that hang
	free chan struct{}
}

func newMoody() *moody {
	return &moody{Store: mem.New(), held: make(chan string, 16), free: make(chan struct{})}
}

func (m *moody) wait(ctx context.Context, key string, value []byte) error {
	if m.down.Load() {
		return fmt.Errorf("write %s: %w: connection refused", key, store.ErrUnavailable)
	}
	if most := m.most.Load(); most > 0 && int64(len(value)) > most {
		return fmt.Errorf("write %s: %w", key, store.ErrTooLarge)
	}
	m.mu.Lock()
	hold := m.hold != nil && m.hold(key)
	m.mu.Unlock()
	if !hold {
		return nil
	}
	m.held <- key
	select {
	case <-m.free:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (m *moody) holding(prefix string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.hold = func(key string) bool { return strings.HasPrefix(key, prefix) }
}

func (m *moody) Create(ctx context.Context, key string, value []byte) (int64, error) {
	if err := m.wait(ctx, key, value); err != nil {
		return 0, err
	}
	return m.Store.Create(ctx, key, value)
}

func (m *moody) Update(ctx context.Context, key string, value []byte, mod int64) (int64, error) {
	if err := m.wait(ctx, key, value); err != nil {
		return 0, err
	}
	return m.Store.Update(ctx, key, value, mod)
}

func (m *moody) Commit(ctx context.Context, ops ...store.Op) (int64, error) {
	if err := m.wait(ctx, ops[0].Key, ops[0].Value); err != nil {
		return 0, err
	}
	return m.Store.Commit(ctx, ops...)
}

func (m *moody) Get(ctx context.Context, key string) (store.Entry, error) {
	if m.down.Load() {
		return store.Entry{}, store.ErrUnavailable
	}
	return m.Store.Get(ctx, key)
}

func (m *moody) Revision(ctx context.Context) (int64, error) {
	if m.down.Load() {
		return 0, store.ErrUnavailable
	}
	return m.Store.Revision(ctx)
}

// TestStoreIsGone: writes and current reads say what is wrong and what to do, reads
// of the cache how old they may be, /readyz why the server is not ready; and all is
// well as soon as the store is back.
func TestStoreIsGone(t *testing.T) {
	t.Parallel()
	m := newMoody()
	s, c := startWith(t, func(config *apiserver.Config) { config.Store = m })
	put(t, c.CoreV1().ConfigMaps("default"), "before", nil)
	const maps = "/api/v1/namespaces/default/configmaps"
	body := []byte(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"after"}}`)
	watching, err := c.CoreV1().ConfigMaps("default").Watch(t.Context(), metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		t.Fatal(err)
	}
	defer watching.Stop()

	m.down.Store(true)
	for _, r := range []struct{ method, path string }{{http.MethodPost, maps}, {http.MethodGet, maps}, {http.MethodGet, maps + "/before"}, {http.MethodDelete, maps + "/before"}} {
		w := send(t, s, r.method, r.path, "application/json", body)
		if text := w.Body.String(); w.Code != http.StatusServiceUnavailable || !strings.Contains(text, "the store does not answer") || !strings.Contains(text, "/readyz") {
			t.Errorf("%s %s: %d %s", r.method, r.path, w.Code, text)
		}
	}
	for _, path := range []string{maps + "?resourceVersion=0", maps + "/before?resourceVersion=0", maps + "?resourceVersion=1"} {
		w := send(t, s, http.MethodGet, path, "", nil)
		if warning := w.Header().Get("Warning"); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "before") || !strings.Contains(warning, "has not answered since") {
			t.Errorf("%s: %d, Warning %q, %s", path, w.Code, warning, w.Body)
		}
	}
	if w := send(t, s, http.MethodGet, "/readyz", "", nil); w.Code != http.StatusInternalServerError || !strings.Contains(w.Body.String(), "[-]etcd failed") {
		t.Errorf("/readyz: %d %s", w.Code, w.Body)
	}

	m.down.Store(false)
	if w := send(t, s, http.MethodGet, "/readyz", "", nil); w.Code != http.StatusOK {
		t.Errorf("/readyz once it is back: %d %s", w.Code, w.Body)
	}
	w := send(t, s, http.MethodPost, maps, "application/json", body)
	if w.Code != http.StatusCreated {
		t.Errorf("create once it is back: %d %s", w.Code, w.Body)
	}
	if w := send(t, s, http.MethodGet, maps+"?resourceVersion=0", "", nil); w.Header().Get("Warning") != "" {
		t.Errorf("it is back, and still: %s", w.Header().Get("Warning"))
	}
	// The watch has gone on all the time.
	for e := range watching.ResultChan() {
		if o, ok := e.Object.(*corev1.ConfigMap); ok && o.Name == "after" {
			break
		}
	}
}

// TestTooLargeForTheStore: an object that does not fit is tried without the owners of
// its fields; if it still does not, the client is told in etcd's words.
func TestTooLargeForTheStore(t *testing.T) {
	t.Parallel()
	m := newMoody()
	s, _ := startWith(t, func(config *apiserver.Config) { config.Store = m })
	data := strings.Repeat("x", 4000)
	body := fmt.Appendf(nil, `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"m"},"data":{"a":%q}}`, data)
	m.most.Store(4150) // with owners it is some 200 bytes more
	w := send(t, s, http.MethodPost, "/api/v1/namespaces/default/configmaps", "application/json", body)
	if w.Code != http.StatusCreated || strings.Contains(w.Body.String(), "managedFields") {
		t.Errorf("what fits without owners: %d %.600s", w.Code, w.Body)
	}
	m.most.Store(1000)
	w = send(t, s, http.MethodPost, "/api/v1/namespaces/default/configmaps", "application/json", []byte(strings.Replace(string(body), `"m"`, `"n"`, 1)))
	if w.Code != http.StatusInternalServerError || !strings.Contains(w.Body.String(), `"message":"etcdserver: request is too large"`) {
		t.Errorf("what does not fit: %d %.600s", w.Code, w.Body)
	}
}

// TestCancelledWrite: a client that goes away while its Service is being stored
// leaves a whole Service, whose address nobody else gets.
func TestCancelledWrite(t *testing.T) {
	t.Parallel()
	m := newMoody()
	_, c := startWith(t, func(config *apiserver.Config) { config.Store = m })
	services := c.CoreV1().Services("default")
	service := func(name string) *corev1.Service {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ServiceSpec{ClusterIP: "10.43.7.7", Ports: []corev1.ServicePort{{Port: 80}}}}
	}
	w, err := services.Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	m.holding("/registry/services/specs/default/gone")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := services.Create(ctx, service("gone"), metav1.CreateOptions{})
		done <- err
	}()
	<-m.held
	cancel()
	if err := <-done; err == nil {
		t.Error("a cancelled request was answered")
	}
	close(m.free)
	for e := range w.ResultChan() {
		if o, ok := e.Object.(*corev1.Service); ok && o.Name == "gone" {
			break
		}
	}
	if _, err := services.Create(t.Context(), service("other"), metav1.CreateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("the address is given away again: %v", err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := services.Create(ended, service("never"), metav1.CreateOptions{}); err == nil {
		t.Error("a request that was cancelled before it came was served")
	}
}

// TestTimeOfRequests: a write that hangs is 504 when its client's time is up, or
// after a minute.
func TestTimeOfRequests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMoody()
		s, _ := startWith(t, func(config *apiserver.Config) { config.Store = m })
		m.holding("/registry/configmaps/default/")
		for query, want := range map[string]time.Duration{"": time.Minute, "?timeout=5s": 5 * time.Second, "?timeout=10m": time.Minute, "?timeout=0s": time.Minute} {
			begin := time.Now()
			w := send(t, s, http.MethodPost, "/api/v1/namespaces/default/configmaps"+query, "application/json", []byte(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"m"}}`))
			<-m.held
			if d := time.Since(begin); d != want || w.Code != http.StatusGatewayTimeout || !strings.Contains(w.Body.String(), `"reason":"Timeout"`) {
				t.Errorf("%q: after %s %d %s, want 504 after %s", query, d, w.Code, w.Body, want)
			}
		}
	})
}
