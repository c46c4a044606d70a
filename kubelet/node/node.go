package node

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"
	nodeutil "k8s.io/component-helpers/node/util"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/linux/machine"
)

// A Node keeps one Node object.
type Node struct {
	cfg      Config
	identity machine.Identity
	informer cache.SharedIndexInformer
	own      bool // the informer is ours to run

	kick chan struct{} // capacity 1: something may have changed

	registered chan struct{} // closed when registration is done
	known      chan struct{} // closed when current is first set

	mu      sync.Mutex // guards current
	current *corev1.Node

	// Of Run's loop.
	podCIDR string // what the runtime was told
	version *runtimeapi.VersionResponse
	written time.Time // of the last status
	ticked  time.Time // when Tick was last called; of register, then of keepLease
}

// New returns a Node that does nothing until Run.
func New(cfg Config) (*Node, error) {
	if err := cfg.withDefaults(); err != nil {
		return nil, err
	}
	n := &Node{cfg: cfg, identity: machine.Identify(), informer: cfg.Informer, kick: make(chan struct{}, 1), registered: make(chan struct{}), known: make(chan struct{})}
	if n.informer == nil {
		n.own = true
		lw := cache.NewListWatchFromClient(cfg.Client.CoreV1().RESTClient(), "nodes", "",
			fields.OneTermEqualSelector("metadata.name", cfg.Name))
		n.informer = cache.NewSharedIndexInformer(lw, &corev1.Node{}, 0, cache.Indexers{})
	}
	return n, nil
}

// Changed says that something which the status shows may have changed.
func (n *Node) Changed() {
	select {
	case n.kick <- struct{}{}:
	default: // one is pending
	}
}

// Current is the newest known version of the object, nil before registration.
func (n *Node) Current() *corev1.Node {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.current
}

// Registered is closed once the object exists.
func (n *Node) Registered() <-chan struct{} { return n.registered }

// Known is closed once Current is not nil: before Registered when the object is
// there from an earlier life.
func (n *Node) Known() <-chan struct{} { return n.known }

// IPs are the node's addresses.
func (n *Node) IPs() []string {
	out := make([]string, len(n.cfg.IPs))
	for i, ip := range n.cfg.IPs {
		out[i] = ip.String()
	}
	return out
}

func (n *Node) setCurrent(node *corev1.Node) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.setCurrentLocked(node)
}

// setCurrentLocked takes a version, unless a newer one is known: what a write returns
// may come after the event of a later write. A range of pod addresses is acted upon,
// whichever way it becomes known.
func (n *Node) setCurrentLocked(node *corev1.Node) {
	if n.current == nil {
		close(n.known)
	} else if n.current.UID == node.UID {
		if c, err := resourceversion.CompareResourceVersion(node.ResourceVersion, n.current.ResourceVersion); err == nil && c < 0 {
			return
		}
	}
	if n.current == nil || n.current.Spec.PodCIDR != node.Spec.PodCIDR {
		n.Changed()
	}
	n.current = node
}

// Run registers the node and keeps it up to date until ctx ends.
func (n *Node) Run(ctx context.Context) error {
	reg, err := n.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { n.seen(obj) },
		UpdateFunc: func(_, obj any) { n.seen(obj) },
	})
	if err != nil {
		return err
	}
	defer func() { _ = n.informer.RemoveEventHandler(reg) }()
	var tasks sync.WaitGroup
	defer tasks.Wait()
	if n.own {
		tasks.Go(func() { n.informer.RunWithContext(ctx) })
	}
	n.event(corev1.EventTypeNormal, "Starting", "Starting kubelet.")
	if err := n.register(ctx); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return nil
	}
	close(n.registered)
	tasks.Go(func() { n.keepLease(ctx) })
	n.keepStatus(ctx)
	return nil
}

func (n *Node) seen(obj any) {
	node, ok := obj.(*corev1.Node)
	if !ok || node.Name != n.cfg.Name {
		return
	}
	n.mu.Lock()
	before := n.current
	n.setCurrentLocked(node)
	node = n.current
	n.mu.Unlock()
	switch {
	case before == nil || before.Spec.Unschedulable == node.Spec.Unschedulable:
	case node.Spec.Unschedulable:
		n.statusEvent("NodeNotSchedulable")
	default:
		n.statusEvent("NodeSchedulable")
	}
}

// register creates the object, or brings the one of an earlier life up to date.
// It tries until it succeeds or ctx ends.
func (n *Node) register(ctx context.Context) error {
	delay := 100 * time.Millisecond
	for {
		n.tick(ctx)
		err := n.tryRegister(ctx)
		if err == nil || ctx.Err() != nil {
			return nil
		}
		n.cfg.Log.Warn("cannot register the node", base.KeyNode, n.cfg.Name, base.KeyError, err)
		again := time.NewTimer(delay)
		for waiting := true; waiting; {
			select {
			case <-ctx.Done():
				again.Stop()
				return nil
			case <-n.kick:
				n.prepare(ctx)
			case <-again.C:
				waiting = false
			}
		}
		delay = min(2*delay, 7*time.Second)
	}
}

// prepare lets pods run on a node that is known from an earlier life but cannot be
// registered yet: the runtime learns the range of addresses and says how it is.
func (n *Node) prepare(ctx context.Context) {
	if node := n.Current(); node != nil {
		n.tellRange(ctx, node)
		n.status(ctx, node)
	}
}

// tellRange tells the runtime the node's range of pod addresses, if it is new.
func (n *Node) tellRange(ctx context.Context, node *corev1.Node) {
	cidr := joinCIDRs(node)
	if cidr == "" || cidr == n.podCIDR {
		return
	}
	_, err := n.cfg.Runtime.UpdateRuntimeConfig(ctx, &runtimeapi.UpdateRuntimeConfigRequest{
		RuntimeConfig: &runtimeapi.RuntimeConfig{NetworkConfig: &runtimeapi.NetworkConfig{PodCidr: cidr}}})
	if err != nil {
		n.cfg.Log.Warn("cannot tell the runtime the pod range", base.KeyAddress, cidr, base.KeyError, err)
		return
	}
	n.podCIDR = cidr
}

func (n *Node) tryRegister(ctx context.Context) error {
	nodes := n.cfg.Client.CoreV1().Nodes()
	fresh := n.initial()
	fresh.Status = *n.status(ctx, fresh)
	created, err := nodes.Create(ctx, fresh, metav1.CreateOptions{})
	if err == nil {
		n.cfg.Log.Info("node registered", base.KeyNode, n.cfg.Name)
		n.written = time.Now()
		n.setCurrent(created)
		n.tell(&corev1.NodeStatus{}, &created.Status)
		return nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	old, err := nodes.Get(ctx, n.cfg.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	want := old.DeepCopy()
	reconcile(want, fresh)
	if !apiequality.Semantic.DeepEqual(old, want) {
		if old, err = nodes.Update(ctx, want, metav1.UpdateOptions{}); err != nil {
			return fmt.Errorf("updating the existing object: %w", err)
		}
	}
	n.setCurrent(old)
	return nil
}

// reconcile sets what the kubelet owns of an existing object's metadata.
func reconcile(node, fresh *corev1.Node) {
	if node.Labels == nil {
		node.Labels = map[string]string{}
	}
	maps.Copy(node.Labels, fresh.Labels)
	if node.Annotations == nil && len(fresh.Annotations) > 0 {
		node.Annotations = map[string]string{}
	}
	maps.Copy(node.Annotations, fresh.Annotations)
	if node.Spec.ProviderID == "" {
		node.Spec.ProviderID = fresh.Spec.ProviderID
	}
}

// keepStatus writes the status when it changed.
func (n *Node) keepStatus(ctx context.Context) {
	const first, most = 50 * time.Millisecond, 5 * time.Second
	again := first
	for {
		ready := n.syncStatus(ctx)
		var wait time.Duration
		if ready {
			again = first
			wait = n.cfg.StatusEvery
		} else {
			wait = again
			again = min(2*again, most)
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		case <-n.kick:
			timer.Stop()
			again = first
		}
	}
}

// syncStatus tells the runtime the pod range, asks how it is and writes what changed.
func (n *Node) syncStatus(ctx context.Context) (ready bool) {
	node := n.Current()
	if node == nil {
		return false
	}
	n.tellRange(ctx, node)
	st := n.status(ctx, node)
	ready = conditionOf(st, corev1.NodeReady) == corev1.ConditionTrue
	if !differs(&node.Status, st) && time.Since(n.written) < n.cfg.StatusEvery {
		return ready
	}
	changed := node.DeepCopy()
	changed.Status = *st
	got, _, err := nodeutil.PatchNodeStatus(n.cfg.Client.CoreV1(), types.NodeName(n.cfg.Name), node, changed)
	switch {
	case apierrors.IsNotFound(err):
		// Somebody deleted the object under us: it comes back.
		n.cfg.Log.Warn("the node's object is gone, registering again", base.KeyNode, n.cfg.Name)
		if err := n.tryRegister(ctx); err != nil {
			return false
		}
	case err != nil:
		if ctx.Err() == nil {
			n.cfg.Log.Warn("cannot write the node's status", base.KeyNode, n.cfg.Name, base.KeyError, err)
		}
		return false
	default:
		n.written = time.Now()
		n.setCurrent(got)
		n.tell(&node.Status, &got.Status)
	}
	return ready
}

func joinCIDRs(node *corev1.Node) string {
	if len(node.Spec.PodCIDRs) > 0 {
		var s strings.Builder
		s.WriteString(node.Spec.PodCIDRs[0])
		for _, c := range node.Spec.PodCIDRs[1:] {
			s.WriteString("," + c)
		}
		return s.String()
	}
	return node.Spec.PodCIDR
}
