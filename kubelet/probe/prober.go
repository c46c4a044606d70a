package probe

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A Prober probes the containers of a node.
type Prober struct {
	config Config
	ctx    context.Context //nolint:containedctx // the life of all probes, ended by Close
	cancel context.CancelFunc
	http   *http.Transport
	check  func(context.Context, *container, *corev1.Probe) (Result, string, error) // one attempt; tests replace it
	calls  sync.WaitGroup                                                           // probes that are under way

	mu       sync.Mutex // guards what follows and all containers and workers
	closed   bool
	onChange func(types.UID)
	pods     map[types.UID]map[string]*container
	byID     map[string]*container
}

// A container is one that runs or has run last under its name.
type container struct {
	pod     *corev1.Pod // replaced as a whole, never modified
	podIP   string
	spec    *corev1.Container
	id      string
	started time.Time
	workers map[Kind]*worker
}

// New returns a Prober. Close ends it.
func New(c Config) *Prober {
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.Since.IsZero() {
		c.Since = time.Now()
	}
	p := &Prober{
		config: c,
		http:   newTransport(),
		pods:   map[types.UID]map[string]*container{},
		byID:   map[string]*container{},
	}
	p.check = p.once
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
}

// OnChange sets a function to be called with a pod's UID after a result of it
// changed, besides Config.Changed.
func (p *Prober) OnChange(f func(types.UID)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.onChange = f
}

// Sync starts, keeps or ends probing so that it fits the containers that run
// according to status, the pod's newest status; pod.Status is what the API
// server was told last. It may be called at any time.
func (p *Prober) Sync(pod *corev1.Pod, status *corev1.PodStatus) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	p.syncLocked(pod, status, pod.Spec.Containers, status.ContainerStatuses, pod.Status.ContainerStatuses)
	p.syncLocked(pod, status, pod.Spec.InitContainers, status.InitContainerStatuses, pod.Status.InitContainerStatuses)
}

func (p *Prober) syncLocked(pod *corev1.Pod, status *corev1.PodStatus, specs []corev1.Container, now, told []corev1.ContainerStatus) {
	for i := range specs {
		spec := &specs[i]
		if spec.StartupProbe == nil && spec.LivenessProbe == nil && spec.ReadinessProbe == nil {
			continue
		}
		s := find(now, spec.Name)
		have := p.pods[pod.UID][spec.Name]
		if s == nil || s.State.Running == nil || s.ContainerID == "" {
			if have != nil {
				have.stop()
			}
			continue
		}
		id := bareID(s.ContainerID)
		if have != nil && have.id == id {
			have.pod, have.podIP, have.spec = pod, status.PodIP, spec
			continue
		}
		if have != nil {
			p.forgetLocked(have)
		}
		c := &container{
			pod: pod, podIP: status.PodIP, spec: spec, id: id,
			started: s.State.Running.StartedAt.Time, workers: map[Kind]*worker{},
		}
		if p.pods[pod.UID] == nil {
			p.pods[pod.UID] = map[string]*container{}
		}
		p.pods[pod.UID][spec.Name] = c
		p.byID[id] = c
		before := find(told, spec.Name)
		if before != nil && bareID(before.ContainerID) != id {
			before = nil
		}
		p.beginLocked(c, before)
	}
}

// Terminating ends the liveness and startup probes of a pod that is being
// deleted; its readiness probes go on until the containers stop.
func (p *Prober) Terminating(pod *corev1.Pod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.pods[pod.UID] {
		for kind, w := range c.workers {
			if kind != Readiness {
				w.stop()
			}
		}
	}
}

// Remove ends all probes of a pod and forgets their results.
func (p *Prober) Remove(uid types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.pods[uid] {
		p.forgetLocked(c)
	}
	delete(p.pods, uid)
}

// Result returns the newest result of a container's probe; containerID may have
// a "scheme://". known is false before the first result that counts, and for a
// container without such a probe.
func (p *Prober) Result(containerID string, kind Kind) (success, known bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.byID[bareID(containerID)]
	if c == nil {
		return false, false
	}
	w := c.workers[kind]
	if w == nil {
		return false, false
	}
	return w.result == Success, w.result != Unknown
}

// Close ends all probes and waits until none is under way any more.
func (p *Prober) Close() {
	p.mu.Lock()
	p.closed = true
	for _, containers := range p.pods {
		for _, c := range containers {
			c.stop()
		}
	}
	p.mu.Unlock()
	p.cancel()
	p.calls.Wait()
	p.http.CloseIdleConnections()
}

func (p *Prober) forgetLocked(c *container) {
	c.stop()
	if p.byID[c.id] == c {
		delete(p.byID, c.id)
	}
}

func (c *container) stop() {
	for _, w := range c.workers {
		w.stop()
	}
}

func find(list []corev1.ContainerStatus, name string) *corev1.ContainerStatus {
	for i := range list {
		if list[i].Name == name {
			return &list[i]
		}
	}
	return nil
}

func bareID(id string) string {
	if _, bare, ok := strings.Cut(id, "://"); ok {
		return bare
	}
	return id
}
