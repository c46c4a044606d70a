package trace

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
)

// A target is the object whose journey is shown.
type target struct {
	kind     string
	object   metav1.Object
	template labels.Set      // labels of its pods
	pods     labels.Selector // picks its pods; nil without any
}

// A finder gets one kind of object.
type finder struct {
	kind  string
	names []string
	get   func(ctx context.Context, c kubernetes.Interface, namespace, name string) (*target, error)
}

// finders in the order in which a bare name is looked for.
var finders = []finder{
	{"Deployment", []string{"deployment", "deployments", "deploy", "deployment.apps"}, func(ctx context.Context, c kubernetes.Interface, ns, name string) (*target, error) {
		o, err := c.AppsV1().Deployments(ns).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		return workload(o, o.Spec.Selector, o.Spec.Template.Labels)
	}},
	{"Pod", []string{"pod", "pods", "po"}, func(ctx context.Context, c kubernetes.Interface, ns, name string) (*target, error) {
		o, err := c.CoreV1().Pods(ns).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		return &target{object: o, template: o.Labels}, nil
	}},
	{"Job", []string{"job", "jobs", "job.batch"}, func(ctx context.Context, c kubernetes.Interface, ns, name string) (*target, error) {
		o, err := c.BatchV1().Jobs(ns).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		return workload(o, o.Spec.Selector, o.Spec.Template.Labels)
	}},
	{"ReplicaSet", []string{"replicaset", "replicasets", "rs", "replicaset.apps"}, func(ctx context.Context, c kubernetes.Interface, ns, name string) (*target, error) {
		o, err := c.AppsV1().ReplicaSets(ns).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		return workload(o, o.Spec.Selector, o.Spec.Template.Labels)
	}},
	{"StatefulSet", []string{"statefulset", "statefulsets", "sts", "statefulset.apps"}, func(ctx context.Context, c kubernetes.Interface, ns, name string) (*target, error) {
		o, err := c.AppsV1().StatefulSets(ns).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		return workload(o, o.Spec.Selector, o.Spec.Template.Labels)
	}},
	{"DaemonSet", []string{"daemonset", "daemonsets", "ds", "daemonset.apps"}, func(ctx context.Context, c kubernetes.Interface, ns, name string) (*target, error) {
		o, err := c.AppsV1().DaemonSets(ns).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		return workload(o, o.Spec.Selector, o.Spec.Template.Labels)
	}},
	{"Service", []string{"service", "services", "svc"}, func(ctx context.Context, c kubernetes.Interface, ns, name string) (*target, error) {
		o, err := c.CoreV1().Services(ns).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		return &target{object: o}, nil
	}},
}

func workload(o metav1.Object, selector *metav1.LabelSelector, template map[string]string) (*target, error) {
	s, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return nil, fmt.Errorf("selector of %s: %w", o.GetName(), err)
	}
	return &target{object: o, template: template, pods: s}, nil
}

// find gets "kind/name", or the first kind that has an object of that name.
func find(ctx context.Context, c kubernetes.Interface, namespace, arg string) (*target, error) {
	kind, name, qualified := strings.Cut(arg, "/")
	if !qualified {
		kind, name = "", arg
	}
	known := false
	for _, f := range finders {
		match := kind == ""
		for _, n := range f.names {
			match = match || n == strings.ToLower(kind)
		}
		if !match {
			continue
		}
		known = true
		t, err := f.get(ctx, c, namespace, name)
		if apierrors.IsNotFound(err) && kind == "" {
			continue
		}
		if err != nil {
			return nil, err
		}
		t.kind = f.kind
		return t, nil
	}
	if !known {
		return nil, fmt.Errorf("kind %q is not known: must be deployment, pod, job, replicaset, statefulset, daemonset or service", kind)
	}
	return nil, fmt.Errorf("nothing called %q in namespace %q", name, namespace)
}

// related returns the objects whose steps belong to the timeline too: pods that
// have a journey of their own, and the Services in front of them with their slices.
func (t *target) related(ctx context.Context, c kubernetes.Interface) ([]metav1.Object, error) {
	ns := t.object.GetNamespace()
	var out []metav1.Object
	if t.pods != nil {
		pods, err := c.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{LabelSelector: t.pods.String()})
		if err != nil {
			return nil, err
		}
		for i := range pods.Items {
			out = append(out, &pods.Items[i])
		}
	}
	services, err := c.CoreV1().Services(ns).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	front := map[string]bool{}
	for i := range services.Items {
		s := &services.Items[i]
		if t.fronts(s) {
			front[s.Name] = true
			out = append(out, s)
		}
	}
	if len(front) == 0 {
		return out, nil
	}
	slices, err := c.DiscoveryV1().EndpointSlices(ns).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for i := range slices.Items {
		if s := &slices.Items[i]; front[s.Labels[discoveryv1.LabelServiceName]] {
			out = append(out, s)
		}
	}
	return out, nil
}

// fronts reports whether a Service leads to the target's pods, or is the target.
func (t *target) fronts(s *corev1.Service) bool {
	if t.object.GetUID() == s.UID {
		return true
	}
	return len(s.Spec.Selector) > 0 && len(t.template) > 0 && labels.SelectorFromSet(s.Spec.Selector).Matches(t.template)
}
