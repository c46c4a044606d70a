package scheduler

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"

	"github.com/periplus/periplus/journey"
)

// A Framework is a profile with its plug-ins made. Plug-ins get it at their making
// and find in it what they need of the scheduler.
type Framework struct {
	Name      string
	Client    kubernetes.Interface
	Informers informers.SharedInformerFactory
	Recorder  events.EventRecorder
	Journey   journey.Recorder // gets what plug-ins have to tell of a pod's way
	Resources *ResourceTable
	Cache     *Cache
	// Writer patches pod status in the background.
	Writer *StatusWriter

	snapshot *Snapshot // of the current cycle; scheduling goroutine only
	queue    *Queue    // set after the plug-ins were made
	storage  *Storage  // nil until a plug-in asks
	side     *side
	held     *held
	needs    []cacheInformer
	percent  int
	slots    int

	preEnqueue  []PreEnqueuePlugin
	queueSort   QueueSortPlugin
	preFilters  []PreFilterPlugin
	filters     []FilterPlugin
	extensions  []extension
	postFilters []PostFilterPlugin
	preScores   []PreScorePlugin
	scorers     []scorer
	batchers    []BatchPlugin
	batchable   bool
	reserves    []ReservePlugin
	permits     []PermitPlugin
	preBinds    []PreBindPlugin
	binds       []BindPlugin
	postBinds   []PostBindPlugin
	hints       []pluginHint
}

type scorer struct {
	ScorePlugin
	name      string
	weight    int64
	normalize NormalizePlugin // nil when its scores are final
}

type extension struct {
	PreFilterExtension
	filter string // the plug-in's name
}

// Snapshot returns the nodes of the current cycle. Only for PreFilter to Permit.
func (f *Framework) Snapshot() *Snapshot { return f.snapshot }

// NewSlot reserves a place in CycleState. Only while the plug-in is made.
func (f *Framework) NewSlot() Slot {
	f.slots++
	return Slot(f.slots - 1)
}

// Watch adds an informer to those that must have synced before the first pod is
// scheduled. Only while the plug-in is made.
func (f *Framework) Watch(i cacheInformer) { f.needs = append(f.needs, i) }

// NominatedPods returns the pods nominated for a node.
func (f *Framework) NominatedPods(node string) []*PodInfo {
	if f.queue == nil {
		return nil
	}
	return f.queue.NominatedPods(node)
}

// Activate moves waiting pods to the active queue.
func (f *Framework) Activate(uids ...types.UID) { f.queue.Activate(uids...) }

// ClearNomination takes its nomination from a pod, and lets it try again.
func (f *Framework) ClearNomination(p *PodInfo) {
	if f.queue == nil {
		return
	}
	f.queue.Nominated.Remove(p.UID())
	f.Writer.ClearNomination(p.Pod)
	f.queue.Activate(p.UID())
}

// Go runs work beside the scheduling goroutine. ctx ends with the scheduler, which waits for it.
func (f *Framework) Go(work func(ctx context.Context)) {
	if f.side != nil {
		f.side.start(work)
	}
}

// NewState returns an empty state for a cycle.
func (f *Framework) NewState() *CycleState { return &CycleState{values: make([]any, f.slots)} }

// build makes the plug-ins of p and sorts them into extension points.
func (f *Framework) build(p Profile) error {
	f.batchable = true
	weights := map[string]int64{}
	for _, use := range p.Plugins {
		plugin, err := use.New(f)
		if err != nil {
			return fmt.Errorf("scheduler: profile %q: %w", p.SchedulerName, err)
		}
		if plugin == nil {
			continue
		}
		name := plugin.Name()
		if _, twice := weights[name]; twice {
			return fmt.Errorf("scheduler: profile %q: plug-in %s is listed twice", p.SchedulerName, name)
		}
		weight := use.Weight
		setDefault(&weight, 1)
		weights[name] = weight
		if err := f.sortIn(plugin, weight); err != nil {
			return fmt.Errorf("scheduler: profile %q: %w", p.SchedulerName, err)
		}
	}
	switch {
	case f.queueSort == nil:
		return fmt.Errorf("scheduler: profile %q: no QueueSort plug-in", p.SchedulerName)
	case len(f.binds) == 0:
		return fmt.Errorf("scheduler: profile %q: no Bind plug-in", p.SchedulerName)
	}
	return nil
}

func (f *Framework) sortIn(p Plugin, weight int64) error {
	if x, ok := p.(PreEnqueuePlugin); ok {
		f.preEnqueue = append(f.preEnqueue, x)
	}
	if x, ok := p.(QueueSortPlugin); ok {
		if f.queueSort != nil {
			return fmt.Errorf("two QueueSort plug-ins: %s and %s", f.queueSort.Name(), x.Name())
		}
		f.queueSort = x
	}
	if x, ok := p.(PreFilterPlugin); ok {
		f.preFilters = append(f.preFilters, x)
	}
	if x, ok := p.(PreFilterExtension); ok {
		f.extensions = append(f.extensions, extension{x, p.Name()})
	}
	decides := false // filters or scores
	if x, ok := p.(FilterPlugin); ok {
		f.filters = append(f.filters, x)
		decides = true
	}
	if x, ok := p.(PostFilterPlugin); ok {
		f.postFilters = append(f.postFilters, x)
	}
	if x, ok := p.(PreScorePlugin); ok {
		f.preScores = append(f.preScores, x)
	}
	if x, ok := p.(ScorePlugin); ok {
		s := scorer{ScorePlugin: x, name: x.Name(), weight: weight}
		s.normalize, _ = p.(NormalizePlugin)
		f.scorers = append(f.scorers, s)
		decides = true
	}
	if x, ok := p.(BatchPlugin); ok {
		f.batchers = append(f.batchers, x)
	} else if decides {
		f.batchable = false
	}
	if x, ok := p.(ReservePlugin); ok {
		f.reserves = append(f.reserves, x)
	}
	if x, ok := p.(PermitPlugin); ok {
		f.permits = append(f.permits, x)
	}
	if x, ok := p.(PreBindPlugin); ok {
		f.preBinds = append(f.preBinds, x)
	}
	if x, ok := p.(BindPlugin); ok {
		f.binds = append(f.binds, x)
	}
	if x, ok := p.(PostBindPlugin); ok {
		f.postBinds = append(f.postBinds, x)
	}
	if x, ok := p.(EventPlugin); ok {
		for _, h := range x.Events() {
			f.hints = append(f.hints, pluginHint{p.Name(), h})
		}
	} else if rejects(p) {
		f.hints = append(f.hints, pluginHint{p.Name(), EventHint{Event: ClusterEvent{AnyResource, AnyAction}}})
	}
	return nil
}

// rejects reports whether p can turn a pod away.
func rejects(p Plugin) bool {
	switch p.(type) {
	case PreFilterPlugin, FilterPlugin, ReservePlugin, PermitPlugin:
		return true
	default:
		return false
	}
}

func (f *Framework) runReserve(ctx context.Context, state *CycleState, p *PodInfo, node string) *Status {
	for _, x := range f.reserves {
		if s := x.Reserve(ctx, state, p, node); !s.IsSuccess() {
			return s
		}
	}
	return nil
}

func (f *Framework) runUnreserve(ctx context.Context, state *CycleState, p *PodInfo, node string) {
	for _, v := range slices.Backward(f.reserves) {
		v.Unreserve(ctx, state, p, node)
	}
}

// runPermit returns Wait, with the pod already held, when any plug-in wants it held.
func (f *Framework) runPermit(ctx context.Context, state *CycleState, p *PodInfo, node string) *Status {
	var waits map[string]time.Duration
	for _, x := range f.permits {
		s, d := x.Permit(ctx, state, p, node)
		switch {
		case s.IsSuccess():
		case s.IsWait():
			if waits == nil {
				waits = map[string]time.Duration{}
			}
			waits[x.Name()] = d
		default:
			return s
		}
	}
	if waits == nil {
		return nil
	}
	f.held.add(p, waits)
	return NewStatus("", Wait)
}

func (f *Framework) runPreBind(ctx context.Context, state *CycleState, p *PodInfo, node string) *Status {
	for _, x := range f.preBinds {
		if s := x.PreBind(ctx, state, p, node); !s.IsSuccess() {
			return s
		}
	}
	return nil
}

func (f *Framework) runBind(ctx context.Context, state *CycleState, p *PodInfo, node string) *Status {
	for _, x := range f.binds {
		if s := x.Bind(ctx, state, p, node); !s.IsSkip() {
			return s
		}
	}
	return ErrorStatus("", ErrNoBinder)
}

func (f *Framework) runPostBind(ctx context.Context, state *CycleState, p *PodInfo, node string) {
	for _, x := range f.postBinds {
		x.PostBind(ctx, state, p, node)
	}
}
