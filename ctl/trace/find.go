package trace

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
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
	backends []string        // Services that it leads to, of its namespace
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
		return &target{object: o, backends: []string{o.Name}}, nil
	}},
	{"Ingress", []string{"ingress", "ingresses", "ing", "ingress.networking.k8s.io"}, func(ctx context.Context, c kubernetes.Interface, ns, name string) (*target, error) {
		o, err := c.NetworkingV1().Ingresses(ns).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		return &target{object: o, backends: backendsOf(o)}, nil
	}},
	{"PersistentVolumeClaim", []string{"persistentvolumeclaim", "persistentvolumeclaims", "pvc", "claim"}, func(ctx context.Context, c kubernetes.Interface, ns, name string) (*target, error) {
		o, err := c.CoreV1().PersistentVolumeClaims(ns).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		return &target{object: o}, nil
	}},
	{"HTTPRoute", []string{"httproute", "httproutes", "httproute.gateway.networking.k8s.io"}, func(ctx context.Context, c kubernetes.Interface, ns, name string) (*target, error) {
		o, err := httpRoute(ctx, c, ns, name)
		if err != nil {
			return nil, err
		}
		return &target{object: o, backends: o.backends()}, nil
	}},
}

// kinds are those that may be asked for, for messages.
const kinds = "deployment, pod, job, replicaset, statefulset, daemonset, service, ingress, pvc or httproute"

func workload(o metav1.Object, selector *metav1.LabelSelector, template map[string]string) (*target, error) {
	s, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return nil, fmt.Errorf("selector of %s: %w", o.GetName(), err)
	}
	return &target{object: o, template: template, pods: s}, nil
}

// backendsOf are the Services that an Ingress leads to.
func backendsOf(i *networkingv1.Ingress) []string {
	var out []string
	add := func(b *networkingv1.IngressBackend) {
		if b != nil && b.Service != nil {
			out = append(out, b.Service.Name)
		}
	}
	add(i.Spec.DefaultBackend)
	for r := range i.Spec.Rules {
		if http := i.Spec.Rules[r].HTTP; http != nil {
			for p := range http.Paths {
				add(&http.Paths[p].Backend)
			}
		}
	}
	return out
}

// A route is what matters of an HTTPRoute, whose kind may be absent.
type route struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Rules []struct {
			BackendRefs []struct {
				Kind string `json:"kind"`
				Name string `json:"name"`
			} `json:"backendRefs"`
		} `json:"rules"`
	} `json:"spec"`
}

const routes = "/apis/gateway.networking.k8s.io/v1/namespaces/"

func httpRoute(ctx context.Context, c kubernetes.Interface, namespace, name string) (*route, error) {
	body, err := c.CoreV1().RESTClient().Get().AbsPath(routes+namespace+"/httproutes/"+name).SetHeader("Accept", "application/json").Do(ctx).Raw()
	if err != nil {
		return nil, err
	}
	o := &route{}
	return o, json.Unmarshal(body, o)
}

func httpRoutes(ctx context.Context, c kubernetes.Interface, namespace string) ([]*route, error) {
	body, err := c.CoreV1().RESTClient().Get().AbsPath(routes+namespace+"/httproutes").SetHeader("Accept", "application/json").Do(ctx).Raw()
	if err != nil {
		return nil, err
	}
	var list struct {
		Items []*route `json:"items"`
	}
	return list.Items, json.Unmarshal(body, &list)
}

func (r *route) backends() []string {
	var out []string
	for _, rule := range r.Spec.Rules {
		for _, b := range rule.BackendRefs {
			if b.Kind == "" || b.Kind == "Service" {
				out = append(out, b.Name)
			}
		}
	}
	return out
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
		return nil, fmt.Errorf("kind %q is not known: must be %s", kind, kinds)
	}
	return nil, fmt.Errorf("nothing called %q in namespace %q", name, namespace)
}

// fronts reports whether a Service leads to the target's pods, or is what the target
// is or leads to.
func (t *target) fronts(s *corev1.Service) bool {
	if t.object.GetUID() == s.UID {
		return true
	}
	return slices.Contains(t.backends, s.Name) || len(s.Spec.Selector) > 0 && len(t.template) > 0 && labels.SelectorFromSet(s.Spec.Selector).Matches(t.template)
}
