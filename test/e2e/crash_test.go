package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// crashes is how often peri is killed.
const crashes = 20

// TestCrashes kills peri under load, again and again, and asks after each restart:
// is every acknowledged object there, do the containers run on, was anything made
// twice?
func TestCrashes(t *testing.T) {
	peri := binary(t)
	if testing.Short() {
		t.Skip("takes a minute")
	}
	n := &node{}
	t.Cleanup(func() {
		if err := n.close(); err != nil {
			t.Error(err)
		}
	})
	if err := n.open(peri, nil); err != nil {
		t.Fatal(err)
	}
	if err := n.start(); err != nil {
		t.Fatal(err)
	}
	run := func(command ...string) string {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
		defer cancel()
		out, err := n.machine.Output(ctx, command[0], command[1:]...)
		if err != nil {
			t.Fatalf("%v\n%s", err, n.up.Tail(40))
		}
		return out
	}
	run("peri", "run", "web", "--image="+n.images.Address()+"/nginx:1", "--port=80", "--expose", "--replicas=2")
	run("kubectl", "rollout", "status", "deployment/web", "--timeout=60s")
	const ids = `jsonpath={range .items[*]}{.metadata.uid} {.status.containerStatuses[0].containerID}{"\n"}{end}`
	before := run("kubectl", "get", "pods", "-l", "app=web", "-o", ids)

	l := &load{t: t, machine: n}
	for i := range crashes {
		if err := l.during(t.Context(), i, func() error { return n.up.Kill() }); err != nil {
			t.Fatalf("crash %d: %v", i, err)
		}
		if err := n.start(); err != nil {
			t.Fatalf("start after crash %d: %v", i, err)
		}
		l.check(t.Context(), i)
		if now := run("kubectl", "get", "pods", "-l", "app=web", "-o", ids); now != before {
			t.Fatalf("crash %d: pods and containers were\n%sand are\n%s", i, before, now)
		}
	}
	t.Logf("%d objects acknowledged over %d crashes", len(l.acknowledged), crashes)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), startTimeout)
	defer cancel()
	if err := n.up.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	if err := n.down(ctx); err != nil {
		t.Error(err)
	}
}

// A load writes from several goroutines and remembers what was acknowledged.
type load struct {
	t       *testing.T
	machine *node

	mu           sync.Mutex
	acknowledged map[string]int64 // name of a ConfigMap to the last acknowledged number in it
	deleted      map[string]bool
}

const (
	writers = 4
	// enough is how many writes must be acknowledged before the crash.
	enough = 60
)

// during writes until enough is acknowledged, crashes peri in the middle of it and
// returns when all writers have noticed.
func (l *load) during(ctx context.Context, round int, crash func() error) error {
	config, err := l.machine.machine.ClientConfig()
	if err != nil {
		return err
	}
	config.Timeout = startTimeout
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	l.mu.Lock()
	if l.acknowledged == nil {
		l.acknowledged, l.deleted = map[string]int64{}, map[string]bool{}
	}
	l.mu.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var done atomic.Int64
	reached := make(chan struct{})
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				if err := l.write(ctx, c, fmt.Sprintf("r%d-w%d-%d", round, w, i)); err != nil {
					return // the crash
				}
				if done.Add(1) == enough {
					close(reached)
				}
			}
		})
	}
	select {
	case <-reached:
	case <-time.After(startTimeout):
		cancel()
		all.Wait()
		return fmt.Errorf("only %d of %d writes were acknowledged", done.Load(), enough)
	}
	err = crash()
	cancel()
	all.Wait()
	return err
}

// write creates an object, updates it twice and deletes every third.
func (l *load) write(ctx context.Context, c kubernetes.Interface, name string) error {
	maps := c.CoreV1().ConfigMaps(metav1.NamespaceDefault)
	m, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"n": "0"}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	l.note(name, 0)
	for n := int64(1); n <= 2; n++ {
		m.Data["n"] = fmt.Sprint(n)
		if m, err = maps.Update(ctx, m, metav1.UpdateOptions{}); err != nil {
			return err
		}
		l.note(name, n)
	}
	if !strings.HasSuffix(name, "3") {
		return nil
	}
	// Between the request and its answer nobody knows whether the object is there.
	l.mu.Lock()
	delete(l.acknowledged, name)
	l.mu.Unlock()
	if err := maps.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	l.mu.Lock()
	l.deleted[name] = true
	l.mu.Unlock()
	return nil
}

func (l *load) note(name string, n int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.acknowledged[name] = n
}

// check compares what the cluster has with what was acknowledged.
func (l *load) check(ctx context.Context, round int) {
	l.t.Helper()
	config, err := l.machine.machine.ClientConfig()
	if err != nil {
		l.t.Fatal(err)
	}
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		l.t.Fatal(err)
	}
	list, err := c.CoreV1().ConfigMaps(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{})
	if err != nil {
		l.t.Fatalf("list after crash %d: %v", round, err)
	}
	have := map[string]string{}
	for _, m := range list.Items {
		have[m.Name] = m.Data["n"]
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for name, n := range l.acknowledged {
		var got int64 = -1
		_, _ = fmt.Sscan(have[name], &got) // stays -1 without the object
		if got < n {
			l.t.Fatalf("crash %d: %s is at %d, acknowledged was %d", round, name, got, n)
		}
	}
	for name := range l.deleted {
		if _, there := have[name]; there {
			l.t.Fatalf("crash %d: %s is there, its deletion was acknowledged", round, name)
		}
	}
	if _, err := c.CoreV1().ConfigMaps(metav1.NamespaceDefault).Get(ctx, "kube-root-ca.crt", metav1.GetOptions{}); err != nil && !apierrors.IsNotFound(err) {
		l.t.Fatal(err)
	}
}
