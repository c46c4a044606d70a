package policy_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/periplus/periplus/cni/policy"
	"github.com/periplus/periplus/linux/netnstest"
)

// TestEnforcer follows objects; without policies it watches no pods.
func TestEnforcer(t *testing.T) {
	t.Parallel()
	netnstest.Run(t, func() {
		ctx, cancel := context.WithCancel(t.Context())
		client := fake.NewClientset(pod("a", "web", "10.42.0.2", "n1", "app=web"),
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a"}})
		applied := make(chan *policy.Layout, 100)
		e, err := policy.New(policy.Config{Informers: informers.NewSharedInformerFactory(client, 0), Node: "n1", OnApplied: func(l *policy.Layout) { applied <- l }})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		ended := make(chan error, 1)
		go func() { ended <- e.Run(ctx) }()
		until := func(what string, ok func(*policy.Layout) bool) {
			t.Helper()
			for l := range applied {
				if ok(l) {
					return
				}
			}
			t.Fatal(what)
		}
		until("no layout", func(l *policy.Layout) bool { return len(l.Ingress) == 0 })
		for _, a := range client.Actions() {
			if a.GetResource().Resource == "pods" {
				t.Errorf("without policies: %s pods", a.GetVerb())
			}
		}
		p, err := client.NetworkingV1().NetworkPolicies("a").Create(ctx, parse(t, "podSelector: {}"), metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		until("one pod", func(l *policy.Layout) bool { return len(l.Ingress) == 1 })
		if _, err := client.CoreV1().Pods("a").Create(ctx, pod("a", "two", "10.42.0.3", "n1"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		until("two pods", func(l *policy.Layout) bool { return len(l.Ingress) == 2 })
		if err := client.NetworkingV1().NetworkPolicies("a").Delete(ctx, p.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		until("none", func(l *policy.Layout) bool { return len(l.Ingress) == 0 })
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
