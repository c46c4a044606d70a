package namespace

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/periplus/periplus/controllers"
)

const (
	firstLook = 250 * time.Millisecond // after content was left over
	lastLook  = 15 * time.Second
)

// Controller declares namespace deletion.
func Controller() controllers.Controller {
	namespaces := corev1.SchemeGroupVersion.WithResource("namespaces")
	everything := schema.GroupVersionResource{Group: "*", Version: "*", Resource: "*"}
	return controllers.Controller{
		Name:    "namespace-controller",
		Workers: 10,
		Reads:   []schema.GroupVersionResource{namespaces, corev1.SchemeGroupVersion.WithResource("pods"), everything},
		Writes:  []schema.GroupVersionResource{namespaces, everything},
		New:     build,
	}
}

type reconciler struct {
	*controllers.Setup
	namespaces corelisters.NamespaceLister
	lookouts   *lookouts

	mu    sync.Mutex
	looks map[string]time.Duration // the last delay of each namespace with content left; guarded by mu
}

func build(s *controllers.Setup) (controllers.Reconciler, error) {
	if s.Metadata == nil {
		return nil, fmt.Errorf("no metadata client: %w", controllers.ErrNotConfigured)
	}
	core := s.Informers.Core().V1()
	r := &reconciler{Setup: s, namespaces: core.Namespaces().Lister(), looks: map[string]time.Duration{}}
	r.lookouts = &lookouts{client: s.Metadata, posted: map[string]context.CancelFunc{}, wake: func(namespace string) {
		s.Queue.Add(controllers.Key{Name: namespace})
	}}
	s.Watch(core.Namespaces().Informer(), controllers.On(func(_, now *corev1.Namespace) {
		if now != nil && now.DeletionTimestamp != nil {
			s.Queue.Add(controllers.Key{Name: now.Name})
		}
	}))
	s.Watch(core.Pods().Informer(), controllers.On(func(old, now *corev1.Pod) {
		if now != nil {
			return
		}
		if ns, err := r.namespaces.Get(old.Namespace); err == nil && ns.DeletionTimestamp != nil {
			s.Queue.Add(controllers.Key{Name: ns.Name})
		}
	}))
	return r, nil
}

var _ controllers.Runner = (*reconciler)(nil)

// Run ends the lookouts when ctx ends.
func (r *reconciler) Run(ctx context.Context) error {
	<-ctx.Done()
	r.lookouts.end()
	return nil
}

// Reconcile deletes what is in the namespace; once nothing is, it removes the
// finalizer.
func (r *reconciler) Reconcile(ctx context.Context, key controllers.Key) (time.Duration, error) {
	ns, err := r.namespaces.Get(key.Name)
	if apierrors.IsNotFound(err) {
		r.forget(key.Name)
		return 0, nil
	}
	if err != nil || ns.DeletionTimestamp == nil || !slices.Contains(ns.Spec.Finalizers, corev1.FinalizerKubernetes) {
		return 0, err
	}
	if ns.Status.Phase != corev1.NamespaceTerminating {
		out := ns.DeepCopy()
		out.Status.Phase = corev1.NamespaceTerminating
		if ns, err = r.Client.CoreV1().Namespaces().UpdateStatus(ctx, out, metav1.UpdateOptions{}); err != nil {
			return 0, ignoreMissing(err)
		}
	}
	left := r.empty(ctx, ns.Name)
	if left.clean() {
		r.forget(key.Name)
		return 0, r.finalize(ctx, ns)
	}
	watched := r.lookouts.post(ctx, ns.Name, left.held)
	if err := r.explain(ctx, ns, left); err != nil {
		return 0, err
	}
	if err := left.err(); err != nil {
		return 0, err
	}
	if watched {
		return 0, nil
	}
	return r.nextLook(key.Name, left.grace), nil
}

func (r *reconciler) finalize(ctx context.Context, ns *corev1.Namespace) error {
	out := ns.DeepCopy()
	out.Spec.Finalizers = slices.DeleteFunc(out.Spec.Finalizers, func(f corev1.FinalizerName) bool { return f == corev1.FinalizerKubernetes })
	_, err := r.Client.CoreV1().Namespaces().Finalize(ctx, out, metav1.UpdateOptions{})
	return ignoreMissing(err)
}

func ignoreMissing(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// nextLook doubles the delay from look to look. While pods end, their events come
// first; the delay then need not be shorter than half their grace period.
func (r *reconciler) nextLook(namespace string, grace time.Duration) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	d := min(max(firstLook, 2*r.looks[namespace]), lastLook)
	r.looks[namespace] = d
	return min(max(d, grace/2), lastLook)
}

func (r *reconciler) forget(namespace string) {
	r.lookouts.recall(namespace)
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.looks, namespace)
}

// explain writes the conditions if they changed.
func (r *reconciler) explain(ctx context.Context, ns *corev1.Namespace, left *leftover) error {
	conditions := slices.Clone(ns.Status.Conditions)
	changed := false
	for _, c := range left.conditions() {
		i := slices.IndexFunc(conditions, func(old corev1.NamespaceCondition) bool { return old.Type == c.Type })
		now := metav1.NewTime(r.Clock.Now())
		switch {
		case i < 0:
			c.LastTransitionTime = now
			conditions = append(conditions, c)
			changed = true
		case conditions[i].Status != c.Status || conditions[i].Reason != c.Reason || conditions[i].Message != c.Message:
			c.LastTransitionTime = conditions[i].LastTransitionTime
			if conditions[i].Status != c.Status {
				c.LastTransitionTime = now
			}
			conditions[i] = c
			changed = true
		}
	}
	if !changed {
		return nil
	}
	out := ns.DeepCopy()
	out.Status.Conditions = conditions
	_, err := r.Client.CoreV1().Namespaces().UpdateStatus(ctx, out, metav1.UpdateOptions{})
	return ignoreMissing(err)
}

// err returns what kept content from being deleted, nil if it only takes time.
func (l *leftover) err() error { return errors.Join(append(l.failures, l.discovery)...) }
