package app

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"
)

// order records what happens.
type order struct {
	mu    sync.Mutex
	steps []string
}

func (o *order) add(s string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.steps = append(o.steps, s)
}

func (o *order) stage(name string, after ...string) stage {
	return stage{name, after, func(ctx context.Context, ready func()) error {
		o.add("start " + name)
		ready()
		<-ctx.Done()
		o.add("end " + name)
		return nil
	}}
}

func TestStagesEndInTheOppositeOrder(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	o := &order{}
	err := runStages(ctx, []stage{o.stage("c", "b"), o.stage("a"), o.stage("b", "a")}, func(name string, _ time.Duration) {
		if name == "c" {
			cancel()
		}
	})
	want := []string{"start a", "start b", "start c", "end c", "end b", "end a"}
	if err != nil || !slices.Equal(o.steps, want) {
		t.Fatalf("%v, %v; want %v", o.steps, err, want)
	}
}

func TestOneFailureEndsAll(t *testing.T) {
	t.Parallel()
	o := &order{}
	bad := errors.New("bad")
	err := runStages(t.Context(), []stage{o.stage("a"), {"b", []string{"a"}, func(context.Context, func()) error { return bad }}, o.stage("c", "b")}, nil)
	if !errors.Is(err, bad) {
		t.Fatalf("%v, want %v", err, bad)
	}
	if slices.Contains(o.steps, "start c") || !slices.Contains(o.steps, "end a") {
		t.Fatalf("%v: c must not start, a must end", o.steps)
	}
}
