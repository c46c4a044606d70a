package controllers_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/clock"

	"github.com/periplus/periplus/controllers"
)

// reconcileFunc is a Reconciler made of a function.
type reconcileFunc func(ctx context.Context, key controllers.Key) (time.Duration, error)

func (f reconcileFunc) Reconcile(ctx context.Context, key controllers.Key) (time.Duration, error) {
	return f(ctx, key)
}

// run runs one controller over the namespaces of a fake cluster until the test ends.
func run(t *testing.T, client *fake.Clientset, f reconcileFunc) {
	t.Helper()
	env := &controllers.Env{
		Client: client, Informers: informers.NewSharedInformerFactory(client, 0), Log: slog.New(slog.DiscardHandler),
	}
	list := []controllers.Controller{{Name: "test-controller", New: func(s *controllers.Setup) (controllers.Reconciler, error) {
		s.Watch(s.Informers.Core().V1().Namespaces().Informer(), controllers.Self(s.Queue))
		return f, nil
	}}}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- controllers.Run(ctx, env, list) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		env.Informers.Shutdown()
	})
}

// TestBackOff tries a failing key again after 5 ms, 10 ms, 20 ms …, also when the
// reconciler panics, and not at all after it succeeded.
func TestBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var at []time.Duration
		start := time.Now()
		run(t, fake.NewClientset(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a"}}), func(context.Context, controllers.Key) (time.Duration, error) {
			mu.Lock()
			defer mu.Unlock()
			at = append(at, time.Since(start))
			switch len(at) {
			case 1, 2:
				return 0, errors.New("no")
			case 3:
				panic("worse")
			}
			return 0, nil
		})
		<-time.After(time.Hour)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		want := []time.Duration{0, 5 * time.Millisecond, 15 * time.Millisecond, 35 * time.Millisecond}
		if len(at) != len(want) {
			t.Fatalf("tried at %v, want %v", at, want)
		}
		for i := range want {
			if at[i] != want[i] {
				t.Errorf("tried at %v, want %v", at, want)
			}
		}
	})
}

// TestLatestWaitCounts lets a later reconciliation replace the wait that an earlier
// one asked for.
func TestLatestWaitCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a"}})
		var calls atomic.Int32
		run(t, client, func(context.Context, controllers.Key) (time.Duration, error) {
			if calls.Add(1) == 1 {
				return time.Minute, nil
			}
			return 0, nil
		})
		synctest.Wait()
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"x": "y"}}}
		if _, err := client.CoreV1().Namespaces().Update(t.Context(), ns, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Hour)
		synctest.Wait()
		if n := calls.Load(); n != 2 {
			t.Errorf("reconciled %d times, want 2", n)
		}
	})
}

func TestSelect(t *testing.T) {
	t.Parallel()
	list := []controllers.Controller{{Name: "a-controller"}, {Name: "b-controller"}, {Name: "c-controller", Off: true}}
	for _, test := range []struct{ items, want, err string }{
		{"", "a b", ""},
		{"*", "a b", ""},
		{"*,-b", "a", ""},
		{"c,*", "a b c", ""},
		{"b-controller", "b", ""},
		{"-a,*", "b", ""},
		{"*,x", "", `"x" is not in the list of known controllers: a-controller, b-controller, c-controller`},
	} {
		var items []string
		if test.items != "" {
			items = strings.Split(test.items, ",")
		}
		got, err := controllers.Select(list, items)
		var names []string
		for _, c := range got {
			names = append(names, strings.TrimSuffix(c.Name, "-controller"))
		}
		if text := strings.Join(names, " "); text != test.want || (err == nil) != (test.err == "") || err != nil && err.Error() != test.err {
			t.Errorf("%q: got %q, %v; want %q, %s", test.items, text, err, test.want, test.err)
		}
	}
}

func TestSlowStart(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		n, failFrom, want, most int
	}{
		{50, 50, 50, 50}, // all succeed
		{50, 0, 0, 1},    // refused from the start: one batch is tried
		{50, 10, 10, 15}, // refused later: the batch in which that happens is the last
		{0, 0, 0, 0},
	} {
		var calls atomic.Int32
		got, err := controllers.SlowStart(test.n, func(i int) error {
			calls.Add(1)
			if i >= test.failFrom {
				return errors.New("quota")
			}
			return nil
		})
		if got != test.want || (err != nil) != (test.failFrom < test.n) || int(calls.Load()) > test.most {
			t.Errorf("%+v: %d succeeded of %d calls, %v", test, got, calls.Load(), err)
		}
	}
}

// TestExpectations follows children through a cache that lags in all possible ways.
func TestExpectations(t *testing.T) {
	t.Parallel()
	key := controllers.Key{Namespace: "n", Name: "o"}
	none := map[types.UID]bool{}
	for _, test := range []struct {
		name    string
		do      func(e *controllers.Expectations)
		cached  map[types.UID]bool
		pending bool
	}{
		{"nothing done", func(*controllers.Expectations) {}, none, false},
		{"created, not shown", func(e *controllers.Expectations) { e.Begin(key); e.Created(key, "a"); e.End(key) }, none, true},
		{"created, shown", func(e *controllers.Expectations) { e.Begin(key); e.Created(key, "a"); e.End(key) }, map[types.UID]bool{"a": false}, false},
		{"one of two shown", func(e *controllers.Expectations) { e.Begin(key); e.Created(key, "a"); e.Created(key, "b"); e.End(key) }, map[types.UID]bool{"a": false}, true},
		{"gone before the creation returned", func(e *controllers.Expectations) { e.Begin(key); e.Gone(key, "a"); e.Created(key, "a"); e.End(key) }, none, false},
		{"gone after", func(e *controllers.Expectations) { e.Begin(key); e.Created(key, "a"); e.End(key); e.Gone(key, "a") }, none, false},
		{"deleted, still shown", func(e *controllers.Expectations) { e.Deleted(key, "a") }, map[types.UID]bool{"a": false}, true},
		{"deleted, terminating", func(e *controllers.Expectations) { e.Deleted(key, "a") }, map[types.UID]bool{"a": true}, false},
		{"deleted, gone", func(e *controllers.Expectations) { e.Deleted(key, "a") }, none, false},
		{"owner forgotten", func(e *controllers.Expectations) { e.Created(key, "a"); e.Forget(key) }, none, false},
	} {
		e := controllers.NewExpectations(clock.RealClock{})
		test.do(e)
		if got := e.Pending(key, test.cached) > 0; got != test.pending {
			t.Errorf("%s: pending %v, want %v", test.name, got, test.pending)
		}
	}
}

// TestExpectationsEnd lets a child that never shows up hold its owner back for
// five minutes and not longer.
func TestExpectationsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		key := controllers.Key{Namespace: "n", Name: "o"}
		e := controllers.NewExpectations(clock.RealClock{})
		e.Created(key, "a")
		if wait := e.Pending(key, nil); wait != 5*time.Minute {
			t.Errorf("waits %v", wait)
		}
		<-time.After(5 * time.Minute)
		if wait := e.Pending(key, nil); wait != 0 {
			t.Errorf("waits %v after five minutes", wait)
		}
	})
}
