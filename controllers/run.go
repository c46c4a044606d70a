package controllers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/periplus/periplus/base"
)

// defaultWorkers is how many keys of a controller are reconciled at a time.
const defaultWorkers = 5

// Run runs the listed controllers while this process leads, until ctx ends. It
// starts the informers that they use (starting one twice does no harm) and
// returns after every worker has ended. Each controller begins as soon as its own
// informers are filled.
func Run(ctx context.Context, env *Env, list []Controller) error {
	if env.Client == nil || env.Informers == nil {
		return errors.New("controllers: Client and Informers are required")
	}
	env = env.withDefaults()
	// The informers outlive a lost leadership: they cannot be started twice.
	outer := ctx
	return env.Elect(ctx, func(ctx context.Context) error { return runAll(ctx, outer, env, list) })
}

func runAll(ctx, informers context.Context, env *Env, list []Controller) error {
	// 1. Build all loops, so that every informer is known before any is started.
	var components []base.Component
	seen := map[string]bool{}
	for _, c := range list {
		if seen[c.Name] {
			return fmt.Errorf("controllers: %s is listed twice", c.Name)
		}
		seen[c.Name] = true
		setup := newSetup(env, c.Name)
		reconciler, err := c.New(setup)
		if err == nil {
			err = errors.Join(setup.errs...)
		}
		switch {
		case errors.Is(err, ErrNotConfigured):
			setup.release()
			setup.Log.Debug("controller left out", base.KeyError, err)
			continue
		case err != nil:
			setup.release()
			return fmt.Errorf("controllers: %s: %w", c.Name, err)
		}
		workers := cmp.Or(env.Options.Workers[c.Name], c.Workers, defaultWorkers)
		components = append(components, base.Component{
			Name: c.Name,
			Run:  func(ctx context.Context) error { return runOne(ctx, setup, reconciler, workers) },
		})
	}

	// 2. Fill the caches and go.
	env.Informers.StartWithContext(informers)
	return base.RunAll(ctx, components...)
}

// runOne runs one controller until ctx ends.
func runOne(ctx context.Context, setup *Setup, reconciler Reconciler, workers int) error {
	defer setup.release()
	for _, done := range setup.synced {
		select {
		case <-done:
		case <-ctx.Done():
			return nil
		}
	}
	var group sync.WaitGroup
	defer group.Wait()
	defer setup.Queue.shutDown()
	for range workers {
		group.Go(func() {
			for setup.Queue.process(ctx, setup.Log, reconciler) {
			}
		})
	}
	if runner, ok := reconciler.(Runner); ok {
		return runner.Run(ctx)
	}
	<-ctx.Done()
	return nil
}

// process takes one key and reconciles it. It returns false when the queue has ended.
func (q *Queue) process(ctx context.Context, log *slog.Logger, reconciler Reconciler) bool {
	key, shutDown := q.queue.Get()
	if shutDown {
		return false
	}
	defer q.queue.Done(key)
	defer q.seen.done(key)
	after, err := guarded(ctx, reconciler, key)
	switch {
	case err != nil && ctx.Err() != nil:
	case err != nil:
		// A conflict, or an object that is gone already, only says that the cache
		// lags: the next event or try settles it.
		level := slog.LevelWarn
		if errors.Is(err, ErrStale) || apierrors.IsConflict(err) || apierrors.IsNotFound(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
			level = slog.LevelDebug
		}
		log.Log(ctx, level, "reconcile failed", base.KeyKey, key.String(), base.KeyError, err)
		q.retry(key)
	default:
		q.settle(key, after)
	}
	return true
}

// guarded turns a panic of one reconciliation into an error, so that one bad
// object does not take the other controllers down.
func guarded(ctx context.Context, r Reconciler, key Key) (after time.Duration, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return r.Reconcile(ctx, key)
}
