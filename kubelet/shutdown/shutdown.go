package shutdown

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/periplus/periplus/base"
)

// What people see of pods that ended for a shutdown, and of those that came too late.
const (
	Reason            = "Terminated"
	Message           = "Pod was terminated in response to imminent node shutdown."
	NotAdmitted       = "NodeShutdown"
	NotAdmittedText   = "Pod was rejected as the node is shutting down."
	reconnectInterval = time.Second
)

// Login is the machine's login manager; *logind.Conn is one, but for Inhibit's type.
type Login interface {
	Delay() (time.Duration, error)
	Raise(ctx context.Context, delay time.Duration) error
	Inhibit(ctx context.Context) (io.Closer, error)
	Shutdowns(ctx context.Context, f func(active bool)) error
	Close() error
}

// Config of a Shutdown.
type Config struct {
	Periods []Period // none: nothing is done
	Connect func() (Login, error)
	// Pods are those that run; End ends one within a number of seconds, and its
	// channel is closed when it has ended.
	Pods func() []*corev1.Pod
	End  func(pod *corev1.Pod, seconds int64) (ended <-chan struct{})
	// Changed is called when Active changes.
	Changed func()
	Log     *slog.Logger
}

// A Shutdown waits for the machine's.
type Shutdown struct {
	cfg    Config
	active atomic.Bool
}

// New returns a Shutdown that does nothing until Run.
func New(c Config) *Shutdown { return &Shutdown{cfg: c} }

// Active says whether the machine is going down: no new pods then.
func (s *Shutdown) Active() bool { return s.active.Load() }

// Run holds the lock until ctx ends.
func (s *Shutdown) Run(ctx context.Context) error {
	if Total(s.cfg.Periods) == 0 || s.cfg.Connect == nil {
		<-ctx.Done()
		return nil
	}
	for first := true; ctx.Err() == nil; first = false {
		err := s.watch(ctx)
		if ctx.Err() != nil {
			return nil
		}
		s.cfg.Log.Warn("graceful shutdown of the node is not possible", base.KeyError, err)
		if first && err != nil && !s.connected() {
			<-ctx.Done() // there is no login manager on this machine
			return nil
		}
		wait := time.NewTimer(reconnectInterval)
		select {
		case <-ctx.Done():
			wait.Stop()
		case <-wait.C:
		}
	}
	return nil
}

func (s *Shutdown) connected() bool {
	l, err := s.cfg.Connect()
	if err != nil {
		return false
	}
	_, err = l.Delay()
	_ = l.Close()
	return err == nil
}

// watch takes the lock and waits for shutdowns until the connection breaks.
func (s *Shutdown) watch(ctx context.Context) error {
	login, err := s.cfg.Connect()
	if err != nil {
		return err
	}
	defer login.Close() //nolint:errcheck // nothing is lost
	have, err := login.Delay()
	if err != nil {
		return err
	}
	if want := Total(s.cfg.Periods); want > have {
		if err := login.Raise(ctx, want); err != nil {
			return err
		}
		if have, err = login.Delay(); err != nil {
			return err
		}
		if want > have {
			s.cfg.Log.Warn("the login manager waits less long for pods than wanted", "wanted", want, "granted", have)
		}
	}
	lock, err := login.Inhibit(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }()
	s.cfg.Log.Info("shutdowns of the machine wait for pods", base.KeyDuration, Total(s.cfg.Periods))

	var tasks sync.WaitGroup
	defer tasks.Wait()
	var cancel context.CancelFunc = func() {}
	defer func() { cancel() }()
	return login.Shutdowns(ctx, func(active bool) {
		if s.active.Swap(active) == active {
			return
		}
		s.cfg.Log.Info("the machine's shutdown", "active", active)
		s.cfg.Changed()
		if !active {
			// Called off: pods that have ended stay ended, a new lock is needed.
			cancel()
			tasks.Wait()
			if next, err := login.Inhibit(ctx); err == nil {
				lock = next
			}
			return
		}
		var ending context.Context
		ending, cancel = context.WithCancel(ctx)
		held := lock
		tasks.Go(func() {
			s.EndAll(ending)
			_ = held.Close()
		})
	})
}

// EndAll ends all pods, group by group. Who does not end in its group's time does
// not hold up the next.
func (s *Shutdown) EndAll(ctx context.Context) {
	for _, g := range Groups(s.cfg.Periods, s.cfg.Pods()) {
		if len(g.Pods) == 0 || ctx.Err() != nil {
			continue
		}
		var ends []<-chan struct{}
		for _, pod := range g.Pods {
			seconds := g.Seconds
			if own := pod.Spec.TerminationGracePeriodSeconds; own != nil && *own <= seconds {
				seconds = *own
			}
			ends = append(ends, s.cfg.End(pod, seconds))
		}
		timeout := time.NewTimer(time.Duration(g.Seconds) * time.Second)
		for _, ended := range ends {
			select {
			case <-ended:
				continue
			case <-timeout.C:
				s.cfg.Log.Warn("pods did not end in the time of their group", "priority", g.Priority, "seconds", g.Seconds)
			case <-ctx.Done():
			}
			break
		}
		timeout.Stop()
	}
}
