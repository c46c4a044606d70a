package controllers_test

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/periplus/periplus/controllers"
)

// TestWorkers: as many keys are worked on at a time as the options say, whatever is declared.
func TestWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		for _, name := range []string{"a", "b", "c", "d"} {
			if err := client.Tracker().Add(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
				t.Fatal(err)
			}
		}
		begun := make(chan controllers.Key, 4)
		env := &controllers.Env{
			Client: client, Informers: informers.NewSharedInformerFactory(client, 0), Log: slog.New(slog.DiscardHandler),
			Options: controllers.Options{Workers: map[string]int{"test-controller": 3}},
		}
		list := []controllers.Controller{{Name: "test-controller", Workers: 1, New: func(s *controllers.Setup) (controllers.Reconciler, error) {
			s.Watch(s.Informers.Core().V1().Namespaces().Informer(), controllers.Self(s.Queue))
			return reconcileFunc(func(ctx context.Context, key controllers.Key) (time.Duration, error) {
				begun <- key
				<-ctx.Done()
				return 0, nil
			}), nil
		}}}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- controllers.Run(ctx, env, list) }()
		time.Sleep(time.Minute) // of the bubble's clock
		synctest.Wait()
		if n := len(begun); n != 3 {
			t.Errorf("%d keys are worked on, want 3", n)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		env.Informers.Shutdown()
	})
}
