package scheduler

import (
	"context"
	"log/slog"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/journey"
)

// component is the scheduler's name in journeys and logs.
const component = "scheduler"

// cacheInformer is what Run waits for.
type cacheInformer interface{ HasSyncedChecker() cache.DoneChecker }

// A Scheduler gives pending pods a node. See the package comment for its parts.
type Scheduler struct {
	config   Config
	profiles map[string]*Framework
	table    *ResourceTable
	cache    *Cache
	queue    *Queue
	writer   *StatusWriter
	attempts *attempts
	traced   bool // spans go somewhere
	log      *slog.Logger

	// Of the scheduling goroutine alone.
	snapshot *Snapshot
	start    int // where the next search for feasible nodes begins
	board    scoreboard
	feasible []*NodeInfo
	verdicts []*Status // by node index, of the last search
	batch    batch

	needs   []cacheInformer
	side    *side
	slots   chan struct{}  // one per binding under way
	binding sync.WaitGroup // goroutines that bind
}

// New makes the plug-ins and adds handlers to the informers. The informers deliver
// once they are started, by Run or before.
func New(c Config) (*Scheduler, error) {
	if err := c.complete(); err != nil {
		return nil, err
	}
	s := &Scheduler{
		config:   c,
		profiles: map[string]*Framework{},
		table:    NewResourceTable(),
		snapshot: &Snapshot{},
		attempts: newAttempts(c.Attempts),
		traced:   c.Journey != journey.Discard,
		log:      slog.With(base.KeyComponent, component),
		slots:    make(chan struct{}, c.Binders),
		side:     newSide(),
	}
	s.cache = NewCache(s.table)
	s.writer = newStatusWriter(c.Client, s.log)

	qc := queueConfig{
		preEnqueue: s.preEnqueue,
		hints:      map[string][]pluginHint{},
		initial:    c.InitialBackoff,
		max:        c.MaxBackoff,
		onGated:    s.gated,
	}
	holds := &held{}
	for _, p := range c.Profiles {
		f := &Framework{
			Name: p.SchedulerName, Client: c.Client, Informers: c.Informers, Recorder: c.Recorder, Journey: c.Journey,
			Resources: s.table, Cache: s.cache, Writer: s.writer,
			snapshot: s.snapshot, held: holds, side: s.side, percent: p.PercentageOfNodesToScore,
		}
		if err := f.build(p); err != nil {
			return nil, err
		}
		s.profiles[f.Name] = f
		qc.hints[f.Name] = f.hints
		for _, h := range f.hints {
			if !slices.Contains(qc.asked, h.Event) {
				qc.asked = append(qc.asked, h.Event)
			}
		}
		s.needs = append(s.needs, f.needs...)
		if qc.less == nil {
			qc.less = f.queueSort.Less
		}
	}
	s.queue = newQueue(qc)
	c.Metrics.follow(s.queue)
	for _, f := range s.profiles {
		f.queue = s.queue
	}
	return s, s.watch()
}

// Run schedules pods until ctx ends, then waits for bindings and status writes
// under way. It starts the informers.
func (s *Scheduler) Run(ctx context.Context) error {
	s.config.Informers.Start(ctx.Done())
	checkers := make([]cache.DoneChecker, len(s.needs))
	for i, n := range s.needs {
		checkers[i] = n.HasSyncedChecker()
	}
	if !cache.WaitFor(ctx, "", checkers...) {
		return nil // ctx ended
	}
	stop := context.AfterFunc(ctx, s.queue.Close)
	defer stop()
	defer s.writer.close()
	defer s.side.close()
	defer s.binding.Wait()
	for {
		qp := s.queue.Pop()
		if qp == nil {
			return nil
		}
		s.scheduleOne(ctx, qp)
	}
}

// Counts returns the number of pods that are about to be scheduled, backing off, and
// waiting for an event.
func (s *Scheduler) Counts() (active, backoff, waiting int) { return s.queue.Counts() }

func (s *Scheduler) preEnqueue(pod *v1.Pod) *Status {
	f := s.profiles[pod.Spec.SchedulerName]
	if f == nil {
		return nil
	}
	for _, x := range f.preEnqueue {
		if st := x.PreEnqueue(pod); !st.IsSuccess() {
			return st
		}
	}
	return nil
}

// gated shows on the pod that a scheduling gate holds it. The API server says so at
// creation; this covers pods that got here without.
func (s *Scheduler) gated(pod *v1.Pod, _ *Status) {
	if len(pod.Spec.SchedulingGates) == 0 {
		return
	}
	s.writer.Condition(pod, v1.PodCondition{
		Type: v1.PodScheduled, Status: v1.ConditionFalse, Reason: v1.PodReasonSchedulingGated,
		Message: "Scheduling is blocked due to non-empty scheduling gates",
	}, nil)
}
