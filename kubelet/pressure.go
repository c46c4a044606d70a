package kubelet

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/base/metric"
	"github.com/periplus/periplus/kubelet/eviction"
	"github.com/periplus/periplus/kubelet/imagegc"
	"github.com/periplus/periplus/linux/machine"
	"github.com/periplus/periplus/linux/podcgroup"
	"github.com/periplus/periplus/linux/pressure"
)

// evictionWait is how long one evicted pod may take to end before the next goes.
const evictionWait = 30 * time.Second

// pressures keeps the node from running out of memory, disk and process IDs. It is
// looked at whenever the lease is renewed, which is a few small reads while all is well:
//
//	images' disk full ─► unused images go
//	a threshold is met ─► condition of the node ─► images, dead containers ─► one pod
type pressures struct {
	k          *Kubelet
	images     *imagegc.Collector // nil: images stay
	thresholds []eviction.Threshold
	config     eviction.Config
	state      *eviction.State // of tick alone

	ticking atomic.Bool

	mu         sync.Mutex // guards the rest
	imagesDir  string     // on the file system of the images
	conditions []corev1.NodeConditionType
	evicted    *worker // the pod that is going
	since      time.Time
}

func newPressures(k *Kubelet) (*pressures, error) {
	p := &pressures{k: k}
	if k.cfg.Eviction != nil {
		var err error
		if p.thresholds, err = eviction.Parse(*k.cfg.Eviction); err != nil {
			return nil, err
		}
		p.config = *k.cfg.Eviction
		p.state = eviction.NewState(p.thresholds, p.config.TransitionPeriod)
	}
	if k.cfg.ImageGC != nil {
		var err error
		p.images, err = imagegc.New(imagegc.Config{
			Policy: *k.cfg.ImageGC, Images: k.cfg.Images, Containers: k.cfg.Runtime, Named: k.namedImages,
			Disk: func(ctx context.Context) (int64, int64, error) {
				f, err := pressure.ReadFilesystem(p.imageFs(ctx))
				return int64(f.Capacity), int64(f.Available), err //nolint:gosec // smaller than 2^63
			},
			Event: k.node.Event, Removed: k.node.Changed, Count: func(why string) { k.metrics.images.Of(metric.Labels{why}).Inc() }, Log: k.log,
		})
		if err != nil {
			return nil, err
		}
	}
	return p, nil
}

// namedImages are the images of the pods that are or will be running here.
func (k *Kubelet) namedImages() []string {
	var out []string
	for _, p := range k.Pods() {
		if podFinished(&p.Status) {
			continue
		}
		for _, list := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
			for i := range list {
				out = append(out, list[i].Image)
			}
		}
		for i := range p.Spec.EphemeralContainers {
			out = append(out, p.Spec.EphemeralContainers[i].Image)
		}
		for i := range p.Spec.Volumes {
			if v := p.Spec.Volumes[i].Image; v != nil && v.Reference != "" {
				out = append(out, v.Reference)
			}
		}
	}
	return out
}

// Conditions are those of the node that hold: pressure of memory, disk, process IDs.
func (p *pressures) Conditions() []corev1.NodeConditionType {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.conditions
}

// begin looks at everything once, in the background, unless that is under way.
func (p *pressures) begin(ctx context.Context) {
	if p.images == nil && p.state == nil || !p.ticking.CompareAndSwap(false, true) {
		return
	}
	p.k.tasks.Go(func() {
		defer p.ticking.Store(false)
		p.tick(ctx)
	})
}

func (p *pressures) tick(ctx context.Context) {
	if p.images != nil {
		p.images.Tick(ctx)
	}
	if p.state == nil || p.ending() {
		return
	}
	o := p.observe(ctx)
	conditions, act := p.state.Next(time.Now(), o)
	p.mu.Lock()
	changed := len(conditions) != len(p.conditions)
	for i := range conditions {
		changed = changed || conditions[i] != p.conditions[i]
	}
	p.conditions = conditions
	p.mu.Unlock()
	if changed {
		p.k.node.Changed()
	}
	if p.overLimit(ctx) || len(act) == 0 {
		return
	}
	p.relieve(ctx, act, o)
}

// ending says whether a pod is still going for the last threshold.
func (p *pressures) ending() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.evicted == nil {
		return false
	}
	if time.Since(p.since) < evictionWait && p.evicted.admittedPod() != nil {
		return true
	}
	p.evicted = nil
	return false
}

// imageFs is a directory on the file system of the images.
func (p *pressures) imageFs(ctx context.Context) string {
	p.mu.Lock()
	dir := p.imagesDir
	p.mu.Unlock()
	if dir != "" {
		return dir
	}
	r, err := p.k.cfg.Images.ImageFsInfo(ctx, &runtimeapi.ImageFsInfoRequest{})
	if err != nil || len(r.ImageFilesystems) == 0 || r.ImageFilesystems[0].GetFsId().GetMountpoint() == "" {
		return p.k.cfg.RootDir
	}
	dir = r.ImageFilesystems[0].GetFsId().GetMountpoint()
	p.mu.Lock()
	p.imagesDir = dir
	p.mu.Unlock()
	return dir
}

// observe reads what is left of everything.
func (p *pressures) observe(ctx context.Context) eviction.Observations {
	if p.k.cfg.Observe != nil {
		return p.k.cfg.Observe()
	}
	o := eviction.Observations{}
	put := func(s eviction.Signal, available, capacity uint64) {
		o[s] = eviction.Observation{Available: *binary(available), Capacity: *binary(capacity)}
	}
	if m := machine.ReadMemoryUse(); m.Total > 0 {
		put(eviction.MemoryAvailable, m.Total-min(m.Total, m.WorkingSet), m.Total)
	}
	if c, ok := p.k.cfg.Cgroups.(interface {
		Memory() (used, limit uint64, ok bool)
	}); ok {
		if used, limit, ok := c.Memory(); ok {
			put(eviction.AllocatableMemoryAvailable, limit-min(limit, used), limit)
		}
	}
	if f, err := pressure.ReadFilesystem(p.k.cfg.RootDir); err == nil {
		put(eviction.NodeFsAvailable, f.Available, f.Capacity)
		if f.Inodes > 0 {
			put(eviction.NodeFsInodesFree, f.InodesFree, f.Inodes)
		}
	}
	if f, err := pressure.ReadFilesystem(p.imageFs(ctx)); err == nil {
		put(eviction.ImageFsAvailable, f.Available, f.Capacity)
		if f.Inodes > 0 {
			put(eviction.ImageFsInodesFree, f.InodesFree, f.Inodes)
		}
	}
	if running, most, err := pressure.Processes(); err == nil {
		put(eviction.PIDAvailable, uint64(max(0, most-running)), uint64(most)) //nolint:gosec // not negative
	}
	return o
}

func binary(n uint64) *resource.Quantity {
	return resource.NewQuantity(int64(n), resource.BinarySI) //nolint:gosec // smaller than 2^63
}

func (p *pressures) layout(ctx context.Context) eviction.Layout {
	a, errA := pressure.ReadFilesystem(p.k.cfg.RootDir)
	b, errB := pressure.ReadFilesystem(p.imageFs(ctx))
	return eviction.Layout{Images: errA == nil && errB == nil && a.Device != b.Device}
}

// active are the workers of pods that run or are to run.
func (k *Kubelet) active() map[types.UID]*worker {
	k.mu.Lock()
	defer k.mu.Unlock()
	out := map[types.UID]*worker{}
	for uid, w := range k.workers {
		if w.admittedPod() != nil {
			out[uid] = w
		}
	}
	return out
}

// overLimit evicts pods that fill more disk than they may.
func (p *pressures) overLimit(ctx context.Context) (any bool) {
	var stats eviction.Stats
	for _, w := range p.k.active() {
		pod := w.admittedPod()
		if pod == nil || !eviction.Limited(pod) {
			continue
		}
		if stats == nil {
			var err error
			if stats, err = p.stats(ctx); err != nil {
				p.k.log.Warn("the pods' use of the disk cannot be read", base.KeyError, err)
				return false
			}
		}
		st, ok := stats(pod)
		if !ok {
			continue
		}
		if message, over := eviction.OverLimit(pod, st, p.layout(ctx)); over && p.evict(w, pod, 1, message, nil, "ephemeralstoragelimit") {
			any = true
		}
	}
	return any
}

func (p *pressures) stats(ctx context.Context) (eviction.Stats, error) {
	s, err := p.k.summary(ctx, false)
	if err != nil {
		return nil, err
	}
	byUID := make(map[string]*statsv1alpha1.PodStats, len(s.Pods))
	for i := range s.Pods {
		byUID[s.Pods[i].PodRef.UID] = &s.Pods[i]
	}
	return func(pod *corev1.Pod) (*statsv1alpha1.PodStats, bool) {
		st, ok := byUID[string(pod.UID)]
		return st, ok
	}, nil
}

// relieve does something about the first of the thresholds.
func (p *pressures) relieve(ctx context.Context, act []eviction.Threshold, o eviction.Observations) {
	t, name := act[0], act[0].Signal.Resource()
	p.k.log.Warn("the node is short of something", "signal", string(t.Signal))
	p.k.node.Event(corev1.EventTypeWarning, "EvictionThresholdMet", "Attempting to reclaim "+string(name))
	if t.Signal.Condition() == corev1.NodeDiskPressure && p.reclaimDisk(ctx, t.Signal) {
		return
	}
	stats, err := p.stats(ctx)
	if err != nil {
		p.k.log.Warn("the pods' figures cannot be read", base.KeyError, err)
		return
	}
	workers := p.k.active()
	pods := make([]*corev1.Pod, 0, len(workers))
	for _, w := range workers {
		if pod := w.admittedPod(); pod != nil {
			pods = append(pods, pod)
		}
	}
	eviction.Rank(t.Signal, p.layout(ctx), pods, stats)
	for _, pod := range pods {
		grace := int64(1)
		if t.Grace > 0 {
			grace = min(int64(p.config.MaxPodGrace/time.Second), graceOf(pod))
		}
		message, annotations := eviction.Message(name, pod, stats, act, o)
		if p.evict(workers[pod.UID], pod, grace, message, annotations, t.Signal) {
			return
		}
	}
	p.k.log.Warn("no pod of the node can be evicted")
}

// reclaimDisk removes what nobody needs, and reports whether that was enough.
func (p *pressures) reclaimDisk(ctx context.Context, s eviction.Signal) bool {
	onNode := s == eviction.NodeFsAvailable || s == eviction.NodeFsInodesFree
	if onNode && p.layout(ctx).Images {
		return false // neither images nor containers are on that disk
	}
	p.k.removeDead(ctx)
	if p.images != nil {
		if err := p.images.RemoveUnused(ctx); err != nil {
			p.k.log.Warn("unused images cannot be removed", base.KeyError, err)
		}
	}
	return p.state.Relieved(p.observe(ctx))
}

// evict ends a pod, unless it is one that the node cannot do without.
func (p *pressures) evict(w *worker, pod *corev1.Pod, grace int64, message string, annotations map[string]string, signal eviction.Signal) bool {
	if isCritical(pod) {
		p.k.log.Warn("a critical pod cannot be evicted", base.KeyPod, pod.Namespace+"/"+pod.Name)
		return false
	}
	c := cause{phase: corev1.PodFailed, reason: eviction.Reason, message: message, grace: &grace}
	if signal.Resource() != "" {
		c.condition = &corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue,
			Reason: corev1.PodReasonTerminationByKubelet, Message: message, ObservedGeneration: pod.Generation}
	}
	if !w.end(c) {
		return false
	}
	p.k.metrics.evictions.Of(metric.Labels{string(signal)}).Inc()
	p.k.cfg.Events.AnnotatedEventf(pod, annotations, corev1.EventTypeWarning, eviction.Reason, "%s", message)
	p.k.log.Info("a pod is evicted", base.KeyPod, pod.Namespace+"/"+pod.Name, base.KeyUID, pod.UID, "why", message)
	p.mu.Lock()
	p.evicted, p.since = w, time.Now()
	p.mu.Unlock()
	return true
}

// isCritical: static pods and those of the system's priority classes.
func isCritical(pod *corev1.Pod) bool {
	return isStatic(pod) || isMirror(pod) || pod.Spec.Priority != nil && *pod.Spec.Priority >= systemCriticalPriority
}

// admitsUnderPressure judges a new pod.
func (p *pressures) admits(pod *corev1.Pod) (reason, message string, ok bool) {
	message, ok = eviction.Admits(p.Conditions(), pod, podcgroup.QOS(pod), isCritical(pod))
	return eviction.Reason, message, ok
}
