package proxy_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/periplus/periplus/journey"
	"github.com/periplus/periplus/proxy"
)

// backend records what it is told.
type backend struct {
	calls chan any // []*proxy.Port for Replace, []proxy.Update for Apply
	fail  chan error
	lost  chan struct{}
}

func newBackend() *backend {
	return &backend{calls: make(chan any, 100), fail: make(chan error, 10), lost: make(chan struct{}, 1)}
}

func (b *backend) Name() string          { return "test" }
func (b *backend) IPv6() bool            { return false }
func (b *backend) Lost() <-chan struct{} { return b.lost }
func (b *backend) Cleanup() error        { return nil }
func (b *backend) Close() error          { return nil }
func (b *backend) result() error {
	select {
	case err := <-b.fail:
		return err
	default:
		return nil
	}
}

func (b *backend) Replace(_ context.Context, p []*proxy.Port) error {
	b.calls <- p
	return b.result()
}

func (b *backend) Apply(_ context.Context, u []proxy.Update) error {
	b.calls <- u
	return b.result()
}

type spans chan journey.Span

func (s spans) Record(span journey.Span) { s <- span }

func TestProxyFollowsTheAPI(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		client := fake.NewClientset(service(nil), slice("a", ready("10.42.0.2", "n1")))
		factory := informers.NewSharedInformerFactory(client, 0)
		b, journeys := newBackend(), make(spans, 10)
		synced := 0
		p, err := proxy.New(proxy.Config{
			Informers: factory, Node: "n1", Backends: []proxy.Backend{b}, Journey: journeys,
			OnSynced: func() { synced++ }, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		})
		if err != nil {
			t.Fatal(err)
		}
		if p.Healthy() == nil {
			t.Error("healthy before the first rules")
		}
		factory.Start(ctx.Done())
		ended := make(chan error, 1)
		go func() { ended <- p.Run(ctx) }()

		// 1. All at once.
		ports := (<-b.calls).([]*proxy.Port)
		if len(ports) != 1 || len(ports[0].Cluster) != 1 {
			t.Fatalf("first: %v", ports)
		}
		<-p.Synced()
		synctest.Wait()
		if err := p.Healthy(); err != nil || synced != 1 {
			t.Errorf("after the first rules: %v, told %d times", err, synced)
		}

		// 2. A change is one update and one step of the journey.
		_, err = client.DiscoveryV1().EndpointSlices("default").Update(ctx, slice("a", ready("10.42.0.2", "n1"), ready("10.42.0.3", "n1")), metav1.UpdateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		updates := (<-b.calls).([]proxy.Update)
		if len(updates) != 1 || len(updates[0].Port.Cluster) != 2 {
			t.Fatalf("change: %v", updates)
		}
		if s := <-journeys; s.Step != "service rules programmed" || s.Name != "web" || s.Node != "n1" || s.Attrs["endpoints"] != "2" {
			t.Errorf("span %+v", s)
		}

		// 3. What changes no rule reaches no backend; a failure starts again with everything.
		same := service(nil)
		same.Labels = map[string]string{"a": "b"}
		if _, err := client.CoreV1().Services("default").Update(ctx, same, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if len(b.calls) != 0 {
			t.Errorf("told of a label: %v", <-b.calls)
		}
		b.fail <- errors.New("no")
		if err := client.CoreV1().Services("default").Delete(ctx, "web", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if updates := (<-b.calls).([]proxy.Update); len(updates) != 1 || updates[0].Port != nil {
			t.Errorf("deletion: %v", updates)
		}
		synctest.Wait()
		if p.Healthy() == nil {
			t.Error("healthy after a failure")
		}
		if ports := (<-b.calls).([]*proxy.Port); len(ports) != 0 {
			t.Errorf("again: %v", ports)
		}
		synctest.Wait()
		if err := p.Healthy(); err != nil {
			t.Error(err)
		}

		// 4. Rules that somebody removed come back.
		b.lost <- struct{}{}
		if _, ok := (<-b.calls).([]*proxy.Port); !ok {
			t.Error("lost rules did not lead to Replace")
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		factory.Shutdown()
	})
}
