package shutdown_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/periplus/periplus/kubelet/shutdown"
)

func pod(name string, priority int32, grace int64) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{Priority: &priority, TerminationGracePeriodSeconds: &grace}}
}

func TestGroups(t *testing.T) {
	t.Parallel()
	periods := []shutdown.Period{{Priority: 100, Seconds: 3}, {Priority: 0, Seconds: 2}, {Priority: 1000, Seconds: 1}}
	var got []string
	for _, g := range shutdown.Groups(periods, []*corev1.Pod{pod("a", 99, 1), pod("b", 100, 1), pod("c", 5000, 1), pod("d", -7, 1), pod("e", 999, 1)}) {
		var names []string
		for _, p := range g.Pods {
			names = append(names, p.Name)
		}
		got = append(got, fmt.Sprintf("%d/%ds:%s", g.Priority, g.Seconds, strings.Join(names, "")))
	}
	if want := []string{"0/2s:ad", "100/3s:be", "1000/1s:c"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestPeriods(t *testing.T) {
	t.Parallel()
	got, err := shutdown.Periods(30*time.Second, 10*time.Second)
	if err != nil || fmt.Sprint(got) != "[{0 20} {2000000000 10}]" || shutdown.Total(got) != 30*time.Second {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range [][2]time.Duration{{time.Millisecond, 0}, {time.Second, 2 * time.Second}, {-1, 0}} {
		if _, err := shutdown.Periods(bad[0], bad[1]); err == nil {
			t.Errorf("%v is allowed", bad)
		}
	}
}

// login is a login manager of which a test sees what it is asked.
type login struct {
	mu     sync.Mutex
	calls  []string
	delay  time.Duration
	signal chan bool
}

func (l *login) note(s string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls = append(l.calls, s)
}

func (l *login) told() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.calls, ", ")
}

func (l *login) Delay() (time.Duration, error) { return l.delay, nil }
func (l *login) Raise(_ context.Context, d time.Duration) error {
	l.note("raise " + d.String())
	l.delay = d
	return nil
}
func (l *login) Inhibit(context.Context) (io.Closer, error) { l.note("lock"); return unlock{l}, nil }
func (l *login) Close() error                               { return nil }
func (l *login) Shutdowns(ctx context.Context, f func(bool)) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case active := <-l.signal:
			f(active)
		}
	}
}

type unlock struct{ l *login }

func (u unlock) Close() error { u.l.note("unlock"); return nil }

func TestPodsEndByPriorityBeforeTheLockIsGivenBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &login{delay: 5 * time.Second, signal: make(chan bool)}
		began := time.Now()
		periods, err := shutdown.Periods(30*time.Second, 10*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		s := shutdown.New(shutdown.Config{
			Periods: periods, Log: slog.New(slog.DiscardHandler), Changed: func() { l.note("changed") },
			Connect: func() (shutdown.Login, error) { return l, nil },
			Pods: func() []*corev1.Pod {
				return []*corev1.Pod{pod("critical", 2_000_000_000, 30), pod("quick", 0, 3), pod("slow", 0, 60)}
			},
			End: func(p *corev1.Pod, seconds int64) <-chan struct{} {
				l.note(fmt.Sprintf("%v end %s %ds", time.Since(began), p.Name, seconds))
				ended := make(chan struct{})
				if p.Name != "slow" { // which does not end at all
					time.AfterFunc(time.Second, func() { close(ended) })
				}
				return ended
			},
		})
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() { defer close(done); _ = s.Run(ctx) }()
		synctest.Wait()
		if s.Active() {
			t.Error("active before the shutdown")
		}
		l.signal <- true
		<-time.After(time.Minute)
		want := "raise 30s, lock, changed, 0s end quick 3s, 0s end slow 20s, 20s end critical 10s, unlock"
		if got := l.told(); got != want || !s.Active() {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		l.signal <- false
		synctest.Wait()
		if s.Active() || !strings.HasSuffix(l.told(), "changed, lock") {
			t.Errorf("after it was called off: %s", l.told())
		}
		cancel()
		<-done
	})
}

func TestNothingWithoutALoginManager(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		ctx, cancel := context.WithCancel(context.Background())
		s := shutdown.New(shutdown.Config{Periods: []shutdown.Period{{Seconds: 5}}, Log: slog.New(slog.DiscardHandler),
			Connect: func() (shutdown.Login, error) { calls++; return nil, errors.New("no bus") }})
		done := make(chan struct{})
		go func() { defer close(done); _ = s.Run(ctx) }()
		<-time.After(time.Hour)
		cancel()
		<-done
		if calls > 2 {
			t.Errorf("%d connections in an hour", calls)
		}
	})
}
