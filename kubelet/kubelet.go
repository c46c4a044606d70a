package kubelet

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/kubelet/eviction"
	"github.com/periplus/periplus/kubelet/image"
	"github.com/periplus/periplus/kubelet/node"
	"github.com/periplus/periplus/kubelet/probe"
	"github.com/periplus/periplus/kubelet/shutdown"
)

// A Kubelet runs the pods of one node.
//
//	Run ─┬─ informer handlers, runtime events, probe results ─► wake(worker)
//	     ├─ worker goroutines (while there is work)
//	     ├─ status writers (while there is something to write)
//	     └─ node (registration, status, lease)
type Kubelet struct {
	cfg         Config
	log         *slog.Logger
	runtimeName string // "periplus": the scheme of container IDs; set by Run
	puller      *image.Puller
	restarts    *backOff
	node        *node.Node
	probes      *probe.Prober
	pressures   *pressures
	shutdown    *shutdown.Shutdown
	particular  *particular
	metrics     *metrics

	ctx   context.Context // of Run
	tasks sync.WaitGroup  // workers and status writers

	admission sync.Mutex // held while a pod is judged, so that two cannot both take the last room

	mu      sync.Mutex // guards the rest
	workers map[types.UID]*worker
	seen    map[types.UID]bool     // pods that the runtime had at the last relist
	listed  int                    // how many of the two sources of pods are complete
	live    []types.UID            // that the API had when it was first asked; nil: those of the informer
	statics map[string]*staticPod  // by file
	mirrors map[string]*corev1.Pod // by namespace/name

	networkReady atomic.Bool
	usage        nodeUsage
}

// New returns a Kubelet that does nothing until Run.
func New(cfg Config) (*Kubelet, error) {
	if err := cfg.withDefaults(); err != nil {
		return nil, err
	}
	k := &Kubelet{
		cfg:      cfg,
		log:      cfg.Log,
		restarts: newBackOff(cfg.BackOffInitial, cfg.BackOffMax),
		workers:  map[types.UID]*worker{},
		statics:  map[string]*staticPod{}, mirrors: map[string]*corev1.Pod{},
		puller: image.NewPuller(image.Config{
			Images: cfg.Images, Events: cfg.Events, Secrets: cfg.Objects,
			BackOff: newBackOff(cfg.BackOffInitial, cfg.BackOffMax),
			Dir:     filepath.Join(cfg.RootDir, "image_manager"), Log: cfg.Log,
		}),
	}
	nc := cfg.Node
	nc.Name, nc.Client, nc.Informer = cfg.NodeName, cfg.Client, cfg.NodeInformer
	nc.Runtime, nc.Images, nc.Log, nc.Events = cfg.Runtime, cfg.Images, k.log, cfg.Events
	nc.MaxPods = cfg.MaxPods
	if nc.Dir == "" {
		nc.Dir = cfg.RootDir
	}
	nc.NetworkReady = k.setNetworkReady
	nc.Problems = k.problems
	nc.Devices = func() (capacity, allocatable corev1.ResourceList) { return k.particular.devices.Capacity() }
	nc.Withheld = k.withheld
	nc.Tick = func(ctx context.Context) { k.pressures.begin(ctx) }
	nc.Pressure = func() []corev1.NodeConditionType { return k.pressures.Conditions() }
	n, err := node.New(nc)
	if err != nil {
		return nil, err
	}
	k.node = n
	k.metrics = newMetrics(k)
	k.probes = newProber(k)
	k.shutdown = newShutdown(k)
	if k.particular, err = newParticular(k); err != nil {
		return nil, err
	}
	if k.pressures, err = newPressures(k); err != nil {
		return nil, err
	}
	return k, nil
}

// Run runs pods until ctx ends. Containers stay when it returns. It fails only
// if the runtime cannot be reached at all at the start.
func (k *Kubelet) Run(ctx context.Context) error {
	version, err := k.cfg.Runtime.Version(ctx, &runtimeapi.VersionRequest{})
	if err != nil {
		return fmt.Errorf("asking the container runtime for its version: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	k.ctx, k.runtimeName = ctx, version.RuntimeName

	err = base.RunAll(ctx,
		base.Component{Name: "node", Run: k.node.Run},
		base.Component{Name: "runtime events", Run: k.runEvents},
		base.Component{Name: "pods", Run: k.runPods},
		base.Component{Name: "static pods", Run: k.runStatic},
		base.Component{Name: "shutdown", Run: k.shutdown.Run},
	)
	cancel()
	k.probes.Close()
	k.particular.claims.Close()
	k.mu.Lock()
	for _, w := range k.workers {
		w.stopTimers()
	}
	k.mu.Unlock()
	k.tasks.Wait()
	return err
}

// setNetworkReady is called by node when the runtime's network comes or goes.
func (k *Kubelet) setNetworkReady(ready bool) {
	if k.networkReady.Swap(ready) == ready || !ready {
		return
	}
	k.wakeAll()
}

// Node returns the node's own object as the informer has it, or what the kubelet
// last wrote; nil before registration.
func (k *Kubelet) Node() *corev1.Node { return k.node.Current() }

// problems are the kubelet's own reasons why the node is not ready.
func (k *Kubelet) problems() []string {
	if k.shutdown.Active() {
		return []string{"node is shutting down"}
	}
	return nil
}

// withheld is what pods do not get of the node's capacity, besides reservations.
func (k *Kubelet) withheld(capacity corev1.ResourceList) corev1.ResourceList {
	return eviction.Reserve(k.pressures.thresholds, capacity)
}

// Registered is closed when the node's object exists in the API.
func (k *Kubelet) Registered() <-chan struct{} { return k.node.Registered() }

// NodeChanged says that something which the node's status shows may have changed.
func (k *Kubelet) NodeChanged() { k.node.Changed() }

// containerID is an identifier of the runtime in the API's form.
func (k *Kubelet) containerID(id string) string { return k.runtimeName + "://" + id }

// runPods feeds the workers from the informer, once it is known what admission,
// resizing and environments are judged by.
func (k *Kubelet) runPods(ctx context.Context) error {
	needed := []<-chan struct{}{k.node.Known()}
	if k.cfg.ServicesSynced != nil {
		needed = append(needed, k.cfg.ServicesSynced)
	}
	for _, known := range needed {
		select {
		case <-known:
		case <-ctx.Done():
			return nil
		}
	}
	reg, err := k.cfg.Pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { k.podUpdated(obj.(*corev1.Pod)) },
		UpdateFunc: func(_, obj any) { k.podUpdated(obj.(*corev1.Pod)) },
		DeleteFunc: func(obj any) {
			if t, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = t.Obj
			}
			if pod, ok := obj.(*corev1.Pod); ok {
				k.podDeleted(pod)
			}
		},
	})
	if err != nil {
		return err
	}
	defer func() { _ = k.cfg.Pods.RemoveEventHandler(reg) }()
	select {
	case <-reg.HasSyncedChecker().Done():
		if k.cfg.PodsLive == nil {
			k.sourceComplete(ctx)
		} else if live, err := k.cfg.PodsLive(ctx); err == nil {
			k.mu.Lock()
			k.live = live
			k.mu.Unlock()
			k.sourceComplete(ctx)
		}
	case <-ctx.Done():
	}
	<-ctx.Done()
	return nil
}

// sourceComplete notes that all pods of one source are known.
func (k *Kubelet) sourceComplete(ctx context.Context) {
	k.mu.Lock()
	k.listed++
	k.mu.Unlock()
	k.reapOrphans(ctx)
}

func (k *Kubelet) podUpdated(pod *corev1.Pod) {
	if pod.Spec.NodeName != k.cfg.NodeName {
		return
	}
	if isMirror(pod) {
		k.mirrorUpdated(pod)
		return
	}
	k.mu.Lock()
	w := k.workers[pod.UID]
	if w == nil {
		w = newWorker(k, pod.UID)
		k.workers[pod.UID] = w
	}
	k.mu.Unlock()
	if k.cfg.Volumes != nil && pod.DeletionTimestamp == nil && !podFinished(&pod.Status) {
		k.cfg.Volumes.Track(pod)
	}
	w.update(pod)
}

func (k *Kubelet) podDeleted(pod *corev1.Pod) {
	if isMirror(pod) {
		k.mirrorDeleted(pod)
		return
	}
	k.mu.Lock()
	w := k.workers[pod.UID]
	k.mu.Unlock()
	if w != nil {
		w.remove(pod)
	}
}

// Retry makes the kubelet look at a pod again, because something that it refers
// to has changed. It does not block.
func (k *Kubelet) Retry(pod types.UID) { k.wake(pod) }

// wake makes the pod's worker look again.
func (k *Kubelet) wake(uid types.UID) {
	k.mu.Lock()
	w := k.workers[uid]
	k.mu.Unlock()
	if w != nil {
		w.wake()
	}
}

func (k *Kubelet) wakeAll() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, w := range k.workers {
		w.wake()
	}
}

func (k *Kubelet) forget(w *worker) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.metrics.forget(w.uid)
	if k.workers[w.uid] == w {
		delete(k.workers, w.uid)
	}
}
