package hollow

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/periplus/periplus/base"
)

const (
	// beatGrid and workGrid are what times of heartbeats and pods are rounded up to.
	beatGrid, workGrid = 100 * time.Millisecond, 10 * time.Millisecond
	// beatWriters and registrars are how many such writes are on their way at a time.
	beatWriters, registrars = 16, 16
	// farewell bounds the removal of the nodes.
	farewell = 2 * time.Minute
)

// A Fleet is a set of nodes that exist only in the API. Make it with New, then Run it.
type Fleet struct {
	cfg   Config
	log   *slog.Logger
	boot  string // the nodes' boot ID
	nodes []*node
	named map[string]*node

	beats, work        *agenda
	heartbeats, writes trouble

	mu   sync.Mutex // guards pods, and what nodes and pods say it does
	pods map[types.NamespacedName]*pod
}

// New returns a fleet that does nothing until Run.
func New(cfg Config) (*Fleet, error) {
	if cfg.Client == nil {
		return nil, errors.New("hollow: Client is missing")
	}
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	f := &Fleet{
		cfg: cfg, log: cfg.Log, boot: string(uuid.NewUUID()), named: make(map[string]*node, cfg.Nodes),
		beats: newAgenda(beatGrid), work: newAgenda(workGrid), pods: map[types.NamespacedName]*pod{},
	}
	for i := range cfg.Nodes {
		n := newNode(f, i)
		f.nodes = append(f.nodes, n)
		f.named[n.name] = n
	}
	return f, nil
}

// Run registers the nodes, calls ready, and is their kubelets until ctx ends. Then it
// removes them, unless they are to be kept.
func (f *Fleet) Run(ctx context.Context, ready func()) error {
	err := f.register(ctx)
	if err == nil && ctx.Err() == nil {
		ready()
		err = base.RunAll(ctx,
			base.Component{Name: "nodes", Run: f.watchNodes},
			base.Component{Name: "pods", Run: f.watchPods},
			base.Component{Name: "heartbeats", Run: func(ctx context.Context) error { return f.beats.run(ctx, beatWriters) }},
			base.Component{Name: "work", Run: func(ctx context.Context) error { return f.work.run(ctx, f.cfg.Writers) }},
		)
	}
	if f.cfg.Keep {
		return err
	}
	return errors.Join(err, f.remove(ctx))
}

// register makes all nodes. The heartbeats of each begin at another moment.
func (f *Fleet) register(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(registrars)
	for i, n := range f.nodes {
		now := time.Now()
		n.renewAt = now.Add(f.cfg.RenewEvery * time.Duration(i) / time.Duration(len(f.nodes)))
		n.statusAt = now.Add(f.cfg.StatusEvery * time.Duration(i+1) / time.Duration(len(f.nodes)))
		group.Go(func() error { return f.registerOne(ctx, n) })
	}
	if err := group.Wait(); err != nil && context.Cause(ctx) != context.Canceled { //nolint:errorlint // the plain end of ctx
		return err
	}
	return nil
}

// registerOne tries again while the server does not answer.
func (f *Fleet) registerOne(ctx context.Context, n *node) error {
	pause := writePause
	for ctx.Err() == nil {
		err := n.register(ctx)
		if err == nil || !passing(err) {
			return err
		}
		f.heartbeats.note(f.log, "cannot register nodes, will try again", err)
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
		pause = min(2*pause, writePauseMax)
	}
	return nil
}

// passing says whether an error may be over after a while.
func passing(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return !errors.Is(err, ErrTaken)
	}
	return apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) || apierrors.IsTooManyRequests(err) || apierrors.IsInternalError(err) ||
		apierrors.IsServiceUnavailable(err) || apierrors.IsConflict(err) || apierrors.IsNotFound(err)
}

// remove takes the nodes out of the API. Their leases and pods follow: controllers
// collect what belongs to a node that is gone.
func (f *Fleet) remove(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(registrars)
	for _, n := range f.nodes {
		f.mu.Lock()
		present, uid := n.present, n.uid
		f.mu.Unlock()
		if !present {
			continue
		}
		group.Go(func() error {
			err := f.cfg.Client.CoreV1().Nodes().Delete(ctx, n.name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
			if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
				return nil
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("remove the nodes (kubectl delete node -l %s=%s does it by hand): %w", base.HollowLabel, f.cfg.Prefix, err)
	}
	return nil
}
