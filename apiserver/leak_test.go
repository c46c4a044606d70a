package apiserver_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/periplus/periplus/apiserver"
	"github.com/periplus/periplus/client"
)

// inBubble runs a server and f under a clock that moves when all is idle. The
// test fails if a goroutine is left when both have ended.
func inBubble(t *testing.T, f func(t *testing.T, ctx context.Context, s *apiserver.Server, c *kubernetes.Clientset)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		s, c := startWith(t, func(*apiserver.Config) {})
		synctest.Wait() // what is made after the start is there
		f(t, ctx, s, c)
		cancel()
	})
}

// TestNothingIsLeft: watches of every kind, of clients that stopped, that went
// away and that are still there when the server ends, leave no goroutine.
func TestNothingIsLeft(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, ctx context.Context, s *apiserver.Server, c *kubernetes.Clientset) {
		maps := c.CoreV1().ConfigMaps("kube-public")
		factory := client.NewFactory(c, s.Source())
		informer := factory.Core().V1().ConfigMaps().Informer()
		factory.StartWithContext(ctx)
		factory.WaitForCacheSyncWithContext(ctx)
		put(t, maps, "a", nil)
		synctest.Wait()
		if _, ok, err := informer.GetStore().GetByKey("kube-public/a"); !ok || err != nil {
			t.Errorf("the informer lacks the object: %v", err)
		}

		stopped, err := maps.Watch(ctx, metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		events(t, stopped, "ADDED a")
		stopped.Stop()

		one, cancel := context.WithCancel(ctx)
		cancelled, err := maps.Watch(one, metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		for range cancelled.ResultChan() {
		}

		seconds := int64(5)
		timed, err := maps.Watch(ctx, metav1.ListOptions{TimeoutSeconds: &seconds, ResourceVersion: "0"})
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		for range timed.ResultChan() {
		}
		if d := time.Since(begin); d != 5*time.Second {
			t.Errorf("a watch of 5 s ended after %s", d)
		}

		unread, err := maps.Watch(ctx, metav1.ListOptions{}) // nobody reads it
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(unread.Stop)
	})
}

// TestBookmarks come a minute after the revision moved, and not while it rests.
func TestBookmarks(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, ctx context.Context, _ *apiserver.Server, c *kubernetes.Clientset) {
		made := put(t, c.CoreV1().ConfigMaps("kube-public"), "a", nil)
		w, err := c.CoreV1().Secrets("").Watch(ctx, metav1.ListOptions{ResourceVersion: made.ResourceVersion, AllowWatchBookmarks: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(w.Stop)
		quiet := time.NewTimer(10 * time.Minute)
		select {
		case e := <-w.ResultChan():
			t.Fatalf("%s while nothing happened", e.Type)
		case <-quiet.C:
		}
		other := put(t, c.CoreV1().ConfigMaps("kube-public"), "b", nil)
		begin := time.Now()
		e := <-w.ResultChan()
		if o, ok := e.Object.(*corev1.Secret); e.Type != watch.Bookmark || !ok || o.ResourceVersion != other.ResourceVersion {
			t.Errorf("%s %+v, want a bookmark at %s", e.Type, e.Object, other.ResourceVersion)
		}
		if d := time.Since(begin); d != time.Minute {
			t.Errorf("the bookmark came after %s", d)
		}
	})
}

// TestTheFuture: a list that wants to be newer than anything waits for a while
// and then says so.
func TestTheFuture(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, ctx context.Context, _ *apiserver.Server, c *kubernetes.Clientset) {
		for _, match := range []metav1.ResourceVersionMatch{metav1.ResourceVersionMatchExact, metav1.ResourceVersionMatchNotOlderThan} {
			var code int
			err := c.CoreV1().RESTClient().Get().AbsPath("/api/v1/configmaps").MaxRetries(0).
				Param("resourceVersion", "99999999").Param("resourceVersionMatch", string(match)).Do(ctx).StatusCode(&code).Error()
			if code != http.StatusGatewayTimeout || !apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge) {
				t.Errorf("%s: %d %v", match, code, err)
			}
		}
	})
}

// TestEventsExpire: an event goes about an hour after it was last seen.
func TestEventsExpire(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, ctx context.Context, _ *apiserver.Server, c *kubernetes.Clientset) {
		events := c.CoreV1().Events("default")
		make := func(name string) *corev1.Event {
			e, err := events.Create(ctx, &corev1.Event{
				ObjectMeta:     metav1.ObjectMeta{Name: name},
				InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: "p", Namespace: "default"}, LastTimestamp: metav1.Now(), Count: 1,
			}, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			return e
		}
		left := func(after time.Duration, want int) {
			t.Helper()
			<-time.After(after)
			synctest.Wait()
			if list, err := events.List(ctx, metav1.ListOptions{}); err != nil || len(list.Items) != want {
				t.Errorf("%d events are left, %v; want %d", len(list.Items), err, want)
			}
		}
		make("once")
		again := make("again")
		left(50*time.Minute, 2)
		again.Count, again.LastTimestamp = 2, metav1.Now()
		if _, err := events.Update(ctx, again, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		left(16*time.Minute, 1)
		left(50*time.Minute, 0)
	})
}
