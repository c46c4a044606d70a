package metrics

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"github.com/periplus/periplus/apiserver/registry"
)

var (
	podsResource  = corev1.SchemeGroupVersion.WithResource("pods")
	nodesResource = corev1.SchemeGroupVersion.WithResource("nodes")
)

// Config is what the answers come from.
type Config struct {
	Objects registry.Reader
	// KubeletTLS authenticates the API server to kubelets and verifies them.
	KubeletTLS *tls.Config
	// Transport is how kubelets are reached, by default HTTPS with KubeletTLS.
	Transport http.RoundTripper
	Log       *slog.Logger
}

// AddToScheme registers the types of the group.
func AddToScheme(s *runtime.Scheme) error { return metricsv1beta1.AddToScheme(s) }

// Resources returns the resources of the group.
func Resources(config Config) []*registry.Resource {
	c := newCollector(config)
	verbs := []string{"get", "list"}
	return []*registry.Resource{
		{
			GVR: metricsv1beta1.SchemeGroupVersion.WithResource("nodes"), Kind: "NodeMetrics", Singular: "node", Verbs: verbs,
			New:     func() runtime.Object { return &metricsv1beta1.NodeMetrics{} },
			NewList: func() runtime.Object { return &metricsv1beta1.NodeMetricsList{} },
			Live:    nodes{c}, Table: nodeTable(),
		},
		{
			GVR: metricsv1beta1.SchemeGroupVersion.WithResource("pods"), Kind: "PodMetrics", Singular: "pod", Namespaced: true, Verbs: verbs,
			New:     func() runtime.Object { return &metricsv1beta1.PodMetrics{} },
			NewList: func() runtime.Object { return &metricsv1beta1.PodMetricsList{} },
			Live:    pods{c}, Table: podTable(),
		},
	}
}

// nodes makes NodeMetrics.
type nodes struct{ *collector }

var _ registry.Live = nodes{}

func (m nodes) Get(ctx context.Context, _, name string) (runtime.Object, error) {
	obj, err := m.config.Objects.Get(nodesResource, "", name)
	if err != nil {
		return nil, err
	}
	n := obj.(*corev1.Node)
	if p, ok := m.collect(ctx, []*corev1.Node{n}, resolution)[name]; ok {
		if out := nodeMetrics(n, p); out != nil {
			return out, nil
		}
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Group: metricsv1beta1.GroupName, Resource: "nodemetrics"}, name)
}

func (m nodes) List(ctx context.Context, _ string, l labels.Selector, f fields.Selector) ([]runtime.Object, error) {
	all, err := m.config.Objects.List(nodesResource, "")
	if err != nil {
		return nil, err
	}
	var list []*corev1.Node
	for _, obj := range all {
		if n := obj.(*corev1.Node); selected(n, l, f) {
			list = append(list, n)
		}
	}
	readings := m.collect(ctx, list, resolution)
	out := make([]runtime.Object, 0, len(list))
	for _, n := range list {
		if p, ok := readings[n.Name]; ok {
			if o := nodeMetrics(n, p); o != nil {
				out = append(out, o)
			}
		}
	}
	return out, nil
}

// nodeMetrics returns nil when there is no window.
func nodeMetrics(n *corev1.Node, p pair) *metricsv1beta1.NodeMetrics {
	u, ok := between(p.before.node, true, p.last.node)
	if !ok {
		return nil
	}
	return &metricsv1beta1.NodeMetrics{
		TypeMeta:   metav1.TypeMeta{APIVersion: metricsv1beta1.SchemeGroupVersion.String(), Kind: "NodeMetrics"},
		ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: n.Labels, CreationTimestamp: metav1.NewTime(time.Now())},
		Timestamp:  metav1.NewTime(u.at), Window: metav1.Duration{Duration: u.window}, Usage: u.list,
	}
}

// pods makes PodMetrics.
type pods struct{ *collector }

var _ registry.Live = pods{}

func (m pods) Get(ctx context.Context, namespace, name string) (runtime.Object, error) {
	obj, err := m.config.Objects.Get(podsResource, namespace, name)
	if err != nil {
		return nil, err
	}
	if out := m.of(ctx, []*corev1.Pod{obj.(*corev1.Pod)}); len(out) > 0 {
		return out[0], nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Group: metricsv1beta1.GroupName, Resource: "podmetrics"}, fmt.Sprintf("%s/%s", namespace, name))
}

func (m pods) List(ctx context.Context, namespace string, l labels.Selector, f fields.Selector) ([]runtime.Object, error) {
	all, err := m.config.Objects.List(podsResource, namespace)
	if err != nil {
		return nil, err
	}
	var list []*corev1.Pod
	for _, obj := range all {
		if p := obj.(*corev1.Pod); selected(p, l, f) {
			list = append(list, p)
		}
	}
	return m.of(ctx, list), nil
}

// selected reports whether an object is asked for. Only names and namespaces can be
// field selectors; others have been refused before.
func selected(obj metav1.Object, l labels.Selector, f fields.Selector) bool {
	if !l.Empty() && !l.Matches(labels.Set(obj.GetLabels())) {
		return false
	}
	return f.Empty() || f.Matches(fields.Set{"metadata.name": obj.GetName(), "metadata.namespace": obj.GetNamespace()})
}

// of returns the metrics of those of the pods that have any, in their order.
func (m pods) of(ctx context.Context, list []*corev1.Pod) []runtime.Object {
	var on []*corev1.Node
	seen := map[string]bool{}
	for _, p := range list {
		name := p.Spec.NodeName
		if p.Status.Phase != corev1.PodRunning || name == "" || seen[name] {
			continue
		}
		seen[name] = true
		if obj, err := m.config.Objects.Get(nodesResource, "", name); err == nil {
			on = append(on, obj.(*corev1.Node))
		}
	}
	readings := m.collect(ctx, on, resolution)
	m.again(ctx, list, readings)
	var out []runtime.Object
	for _, p := range list {
		if r, ok := readings[p.Spec.NodeName]; ok {
			if o := podMetrics(p, r); o != nil {
				out = append(out, o)
			}
		}
	}
	return out
}

// again replaces the readings of nodes on which containers of these pods have begun
// too late for them, so that whoever has waited for a pod sees its figures.
func (m pods) again(ctx context.Context, list []*corev1.Pod, readings map[string]pair) {
	var on []*corev1.Node
	seen := map[string]bool{}
	for _, p := range list {
		name := p.Spec.NodeName
		r, ok := readings[name]
		if !ok || seen[name] || !beganAfter(p, r.last.node.at.Add(-shortestWindow)) || podMetrics(p, r) != nil {
			continue
		}
		if obj, err := m.config.Objects.Get(nodesResource, "", name); err == nil {
			seen[name] = true
			on = append(on, obj.(*corev1.Node))
		}
	}
	if len(on) == 0 || !pause(ctx) {
		return
	}
	maps.Copy(readings, m.collect(ctx, on, 0))
}

// beganAfter reports whether one of a pod's containers has begun after a time.
func beganAfter(p *corev1.Pod, at time.Time) bool {
	for _, list := range [][]corev1.ContainerStatus{p.Status.ContainerStatuses, p.Status.InitContainerStatuses} {
		for i := range list {
			if running := list[i].State.Running; running != nil && running.StartedAt.After(at) {
				return true
			}
		}
	}
	return false
}

// podMetrics returns nil unless there are figures of all containers that run. Their
// time is that of the container whose figures are oldest.
func podMetrics(p *corev1.Pod, r pair) *metricsv1beta1.PodMetrics {
	key := types.NamespacedName{Namespace: p.Namespace, Name: p.Name}
	now, before := r.last.pods[key], r.before.pods[key]
	if len(now) == 0 {
		return nil
	}
	out := &metricsv1beta1.PodMetrics{
		TypeMeta:   metav1.TypeMeta{APIVersion: metricsv1beta1.SchemeGroupVersion.String(), Kind: "PodMetrics"},
		ObjectMeta: metav1.ObjectMeta{Name: p.Name, Namespace: p.Namespace, Labels: p.Labels, CreationTimestamp: metav1.NewTime(time.Now())},
	}
	var first time.Time
	for name, point := range now {
		earlier, known := before[name]
		u, ok := between(earlier, known, point)
		if !ok {
			return nil
		}
		if first.IsZero() || u.at.Before(first) {
			first, out.Timestamp, out.Window.Duration = u.at, metav1.NewTime(u.at), u.window
		}
		out.Containers = append(out.Containers, metricsv1beta1.ContainerMetrics{Name: name, Usage: u.list})
	}
	slices.SortFunc(out.Containers, func(a, b metricsv1beta1.ContainerMetrics) int { return cmp.Compare(a.Name, b.Name) })
	return out
}
