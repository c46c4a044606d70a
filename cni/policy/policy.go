package policy

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/periplus/periplus/base"
)

// Config says whose pods are protected.
type Config struct {
	// Informers gives NetworkPolicies and, once there is one, Pods and Namespaces.
	Informers informers.SharedInformerFactory
	// Node is the name of this node.
	Node string
	// Table is the name of the table; default periplus-policy.
	Table string
	// OnApplied is called after each change has reached the kernel; default: nothing.
	OnApplied func(*Layout)
	Log       *slog.Logger
}

// Enforcer keeps one node's table.
type Enforcer struct {
	config Config
	table  *Table
	kick   chan struct{} // capacity 1: something changed
	others bool          // pods and namespaces are watched
}

// New connects to the kernel, in the namespace of the calling thread.
func New(c Config) (*Enforcer, error) {
	switch {
	case c.Informers == nil:
		return nil, errors.New("policy: Informers: is missing")
	case c.Node == "":
		return nil, errors.New("policy: Node: is empty, must be this node's name")
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.OnApplied == nil {
		c.OnApplied = func(*Layout) {}
	}
	t, err := OpenTable(c.Table, false)
	if err != nil {
		return nil, err
	}
	return &Enforcer{config: c, table: t, kick: make(chan struct{}, 1)}, nil
}

// Close gives up the connection to the kernel; the rules stay.
func (e *Enforcer) Close() error { return e.table.Close() }

func (e *Enforcer) changed() {
	select {
	case e.kick <- struct{}{}:
	default: // one is pending
	}
}

// Run enforces until ctx ends; the rules stay then.
func (e *Enforcer) Run(ctx context.Context) error {
	policies := e.config.Informers.Networking().V1().NetworkPolicies()
	reg, err := policies.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { e.changed() },
		UpdateFunc: func(any, any) { e.changed() },
		DeleteFunc: func(any) { e.changed() },
	})
	if err != nil {
		return err
	}
	defer func() { _ = policies.Informer().RemoveEventHandler(reg) }()
	e.config.Informers.StartWithContext(ctx)
	select {
	case <-reg.HasSyncedChecker().Done():
	case <-ctx.Done():
		return nil
	}
	e.changed() // what an earlier process left may have to go
	delay := time.Duration(0)
	for {
		var again <-chan time.Time
		if delay > 0 {
			again = time.After(delay)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-e.kick:
		case <-again:
		}
		if err := e.sync(ctx); err != nil && ctx.Err() == nil {
			e.config.Log.Error("network policies are not in force", base.KeyError, err)
			delay = min(max(2*delay, 100*time.Millisecond), 30*time.Second)
			continue
		}
		delay = 0
	}
}

// sync makes the kernel hold what the caches say.
func (e *Enforcer) sync(ctx context.Context) error {
	policies, err := e.config.Informers.Networking().V1().NetworkPolicies().Lister().List(labels.Everything())
	if err != nil {
		return err
	}
	if len(policies) == 0 {
		if err := e.table.Remove(); err != nil {
			return err
		}
		e.config.OnApplied(&Layout{})
		return nil
	}
	if !e.others {
		if err := e.watchOthers(ctx); err != nil {
			return err
		}
	}
	core := e.config.Informers.Core().V1()
	pods, err := core.Pods().Lister().List(labels.Everything())
	if err != nil {
		return err
	}
	namespaces, err := core.Namespaces().Lister().List(labels.Everything())
	if err != nil {
		return err
	}
	l := Compile(Objects{Node: e.config.Node, Policies: policies, Pods: pods, Namespaces: namespaces})
	if err := e.table.Apply(l); err != nil {
		return err
	}
	e.config.OnApplied(l)
	return nil
}

// watchOthers begins to watch what policies select; it goes on until ctx ends.
func (e *Enforcer) watchOthers(ctx context.Context) error {
	core := e.config.Informers.Core().V1()
	pods, err := core.Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { e.changed() },
		DeleteFunc: func(any) { e.changed() },
		UpdateFunc: func(old, now any) {
			if a, ok := old.(*corev1.Pod); !ok || podDiffers(a, now.(*corev1.Pod)) {
				e.changed()
			}
		},
	})
	if err != nil {
		return err
	}
	namespaces, err := core.Namespaces().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { e.changed() },
		DeleteFunc: func(any) { e.changed() },
		UpdateFunc: func(old, now any) {
			a, ok := old.(*corev1.Namespace)
			if !ok || !apiequality.Semantic.DeepEqual(a.Labels, now.(*corev1.Namespace).Labels) {
				e.changed()
			}
		},
	})
	if err != nil {
		return err
	}
	e.others = true
	e.config.Informers.StartWithContext(ctx)
	for _, r := range []cache.ResourceEventHandlerRegistration{pods, namespaces} {
		select {
		case <-r.HasSyncedChecker().Done():
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// podDiffers says whether policies see a difference. Containers' ports cannot change.
func podDiffers(a, b *corev1.Pod) bool {
	return finished(a) != finished(b) || a.Spec.NodeName != b.Spec.NodeName || !slices.Equal(a.Status.PodIPs, b.Status.PodIPs) ||
		!apiequality.Semantic.DeepEqual(a.Labels, b.Labels)
}
