package why

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/periplus/periplus/client/conditions"
	"github.com/periplus/periplus/insight"
)

// needs are the objects that an object needs to work: where a cause may be.
//
//	Ingress ─► Service ─► Pod ◄── ReplicaSet ◄── Deployment ◄── HPA
//	                       │  ◄── StatefulSet, DaemonSet, Job ◄── CronJob
//	                       ├─► PersistentVolumeClaim ─► PersistentVolume
//	                       └─► Node
func needs(s *insight.Snapshot, o insight.Object) []insight.Object {
	var out []insight.Object
	switch o := o.(type) {
	case *appsv1.Deployment:
		for i, r := range s.Revisions(o) {
			// Old revisions matter as long as they have pods.
			if i == 0 || r.Status.Replicas > 0 || r.Spec.Replicas != nil && *r.Spec.Replicas > 0 {
				out = append(out, r)
			}
		}
	case *appsv1.ReplicaSet:
		out = pods(insight.Owned[*corev1.Pod](s, o))
	case *appsv1.StatefulSet:
		out = pods(insight.Owned[*corev1.Pod](s, o))
	case *appsv1.DaemonSet:
		out = pods(insight.Owned[*corev1.Pod](s, o))
	case *batchv1.Job:
		out = pods(insight.Owned[*corev1.Pod](s, o))
	case *batchv1.CronJob:
		if jobs := insight.Owned[*batchv1.Job](s, o); len(jobs) > 0 {
			out = append(out, slices.MaxFunc(jobs, func(a, b *batchv1.Job) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) }))
		}
	case *corev1.Service:
		out = behind(s, o)
	case *networkingv1.Ingress:
		for _, b := range backends(o) {
			if b.backend.Service == nil {
				continue
			}
			if svc, ok := insight.Get[*corev1.Service](s, o.Namespace, b.backend.Service.Name); ok && !slices.Contains(out, insight.Object(svc)) {
				out = append(out, svc)
			}
		}
	case *autoscalingv2.HorizontalPodAutoscaler:
		t := o.Spec.ScaleTargetRef
		if target, ok := s.Find(insight.Ref{Kind: t.Kind, Namespace: o.Namespace, Name: t.Name}); ok {
			out = append(out, target)
		}
	case *corev1.Pod:
		for _, name := range insight.PodClaims(o) {
			if c, ok := insight.Get[*corev1.PersistentVolumeClaim](s, o.Namespace, name); ok {
				out = append(out, c)
			}
		}
		if n, ok := insight.Get[*corev1.Node](s, "", o.Spec.NodeName); ok && !conditions.PodReady(o) {
			out = append(out, n)
		}
	case *corev1.PersistentVolumeClaim:
		if v, ok := insight.Get[*corev1.PersistentVolume](s, "", o.Spec.VolumeName); ok {
			out = append(out, v)
		}
		if o.Status.Phase == corev1.ClaimPending {
			// A claim that waits for its first consumer waits for that pod.
			for _, p := range insight.All[*corev1.Pod](s, o.Namespace) {
				if slices.Contains(insight.PodClaims(p), o.Name) {
					out = append(out, p)
				}
			}
		}
	case *corev1.Namespace:
		out = inNamespace(s, o.Name)
	}
	return out
}

// behind are the workloads whose pods a Service selects, and pods that no workload has
// made.
func behind(s *insight.Snapshot, svc *corev1.Service) []insight.Object {
	var out []insight.Object
	for _, o := range inNamespace(s, svc.Namespace) {
		if t := insight.Template(o); t != nil && matches(svc.Spec.Selector, t.Labels) {
			out = append(out, o)
		}
	}
	alone := slices.DeleteFunc(s.Selected(svc.Namespace, svc.Spec.Selector), func(p *corev1.Pod) bool {
		return slices.Contains(out, s.Owner(p))
	})
	return append(out, pods(alone)...)
}

// pods are those worth a look: of those that have ended, the last one.
func pods(list []*corev1.Pod) []insight.Object {
	var out []insight.Object
	var last *corev1.Pod
	for _, p := range list {
		switch p.Status.Phase {
		case corev1.PodSucceeded:
		case corev1.PodFailed:
			if last == nil || p.CreationTimestamp.After(last.CreationTimestamp.Time) {
				last = p
			}
		default:
			out = append(out, p)
		}
	}
	if last != nil && len(out) == 0 {
		out = append(out, last)
	}
	return out
}

// inNamespace are the objects of a namespace that people have made.
func inNamespace(s *insight.Snapshot, namespace string) []insight.Object {
	var out []insight.Object
	top := func(o insight.Object) {
		if metav1.GetControllerOf(o) == nil {
			out = append(out, o)
		}
	}
	each[*networkingv1.Ingress](s, namespace, top)
	each[*corev1.Service](s, namespace, top)
	each[*autoscalingv2.HorizontalPodAutoscaler](s, namespace, top)
	each[*appsv1.Deployment](s, namespace, top)
	each[*appsv1.StatefulSet](s, namespace, top)
	each[*appsv1.DaemonSet](s, namespace, top)
	each[*appsv1.ReplicaSet](s, namespace, top)
	each[*batchv1.CronJob](s, namespace, top)
	each[*batchv1.Job](s, namespace, top)
	each[*corev1.Pod](s, namespace, top)
	each[*corev1.PersistentVolumeClaim](s, namespace, top)
	return out
}

func each[T insight.Object](s *insight.Snapshot, namespace string, do func(insight.Object)) {
	for _, o := range insight.All[T](s, namespace) {
		do(o)
	}
}

// A node of the tree of objects.
type node struct {
	object   insight.Object
	ref      insight.Ref
	health   Health
	state    string
	findings []insight.Finding
	needs    []*node
}

// Reach returns the objects and all that they need.
func Reach(s *insight.Snapshot, objects ...insight.Object) []insight.Object {
	met := map[insight.Ref]bool{}
	var out []insight.Object
	for _, o := range objects {
		if !met[insight.RefOf(o)] {
			walk(s, o, nil, met).each(0, func(n *node, _ int) { out = append(out, n.object) })
		}
	}
	return out
}

// walk makes the tree below an object; an object that is met again is left out.
func walk(s *insight.Snapshot, o insight.Object, rules []Rule, met map[insight.Ref]bool) *node {
	n := &node{object: o, ref: insight.RefOf(o)}
	met[n.ref] = true
	n.health, n.state = health(s, o)
	spoken := map[[2]string]string{} // family and part → rule
	for _, r := range rules {
		for _, f := range r.check(s, o) {
			if r.family != "" && f.Level == insight.Cause {
				key := [2]string{r.family, f.Part}
				if first, ok := spoken[key]; ok && first != r.Name {
					continue
				}
				spoken[key] = r.Name
			}
			n.findings = append(n.findings, f)
		}
	}
	for _, need := range needs(s, o) {
		if !met[insight.RefOf(need)] {
			n.needs = append(n.needs, walk(s, need, rules, met))
		}
	}
	n.findings = telling(n.findings)
	return n
}

// telling drops signs about things of which a cause is known.
func telling(list []insight.Finding) []insight.Finding {
	caused := map[string]bool{}
	for _, f := range list {
		if f.Level == insight.Cause {
			caused[f.Part] = true
		}
	}
	return slices.DeleteFunc(list, func(f insight.Finding) bool { return f.Level == insight.Sign && caused[f.Part] })
}

// each walks the nodes from the root down.
func (n *node) each(depth int, do func(n *node, depth int)) {
	do(n, depth)
	for _, c := range n.needs {
		c.each(depth+1, do)
	}
}
