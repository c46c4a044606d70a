package app

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// A stage is one part of a process.
type stage struct {
	name string
	// after names the stages that must be ready before this one starts. They end
	// only after this one has ended.
	after []string
	// run blocks until ctx ends or the part fails. It calls ready once, as soon as
	// other stages can rely on it.
	run func(ctx context.Context, ready func()) error
}

// A Progress is told when a stage has become ready.
type Progress func(stage string, sinceStart time.Duration)

type running struct {
	stage
	ready  chan struct{}
	done   chan struct{}
	cancel context.CancelFunc
	once   sync.Once
}

// runStages starts every stage when those that it needs are ready, and ends them
// in the opposite order when ctx ends or one fails. The first failure is returned.
func runStages(ctx context.Context, stages []stage, progress Progress) error {
	start := time.Now()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	byName := map[string]*running{}
	contexts := map[string]context.Context{}
	dependents := map[string][]*running{}
	for _, s := range stages {
		// A stage outlives ctx: it is cancelled when what depends on it has ended.
		own, cancel := context.WithCancel(context.WithoutCancel(ctx))
		byName[s.name] = &running{stage: s, ready: make(chan struct{}), done: make(chan struct{}), cancel: cancel}
		contexts[s.name] = own
	}
	for _, s := range stages {
		for _, need := range s.after {
			if byName[need] == nil {
				return fmt.Errorf("stage %s comes after %s, which does not exist", s.name, need)
			}
			dependents[need] = append(dependents[need], byName[s.name])
		}
	}
	var all sync.WaitGroup
	for _, r := range byName {
		all.Go(func() {
			defer close(r.done)
			defer r.cancel()
			for _, need := range r.after {
				select {
				case <-byName[need].ready:
				case <-ctx.Done():
					return
				}
			}
			err := r.run(contexts[r.name], func() {
				r.once.Do(func() {
					close(r.ready)
					if progress != nil {
						progress(r.name, time.Since(start))
					}
				})
			})
			if err != nil && !errors.Is(err, context.Canceled) {
				stop(fmt.Errorf("%s: %w", r.name, err))
			} else if ctx.Err() == nil {
				stop(fmt.Errorf("%s ended unexpectedly", r.name))
			}
		})
		all.Go(func() {
			defer r.cancel()
			<-ctx.Done()
			for _, d := range dependents[r.name] {
				<-d.done
			}
		})
	}
	all.Wait()
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}
