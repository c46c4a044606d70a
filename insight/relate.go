package insight

import (
	"cmp"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const revisionAnnotation = "deployment.kubernetes.io/revision"

// Owned returns the objects of a kind that an object controls.
func Owned[T Object](s *Snapshot, owner Object) []T {
	var out []T
	for _, o := range All[T](s, owner.GetNamespace()) {
		if c := metav1.GetControllerOf(o); c != nil && c.Name == owner.GetName() && c.Kind == KindOf(owner) && (c.UID == owner.GetUID() || owner.GetUID() == "") {
			out = append(out, o)
		}
	}
	return out
}

// Owner is the object that controls o, up to the one that nothing controls.
func (s *Snapshot) Owner(o Object) Object {
	for range 4 { // pod, ReplicaSet or Job, Deployment or CronJob
		c := metav1.GetControllerOf(o)
		if c == nil {
			return o
		}
		up, ok := s.Find(Ref{c.Kind, o.GetNamespace(), c.Name})
		if !ok {
			return o
		}
		o = up
	}
	return o
}

// Revisions returns the ReplicaSets of a Deployment, the newest first.
func (s *Snapshot) Revisions(d *appsv1.Deployment) []*appsv1.ReplicaSet {
	list := Owned[*appsv1.ReplicaSet](s, d)
	number := func(r *appsv1.ReplicaSet) int {
		n, _ := strconv.Atoi(r.Annotations[revisionAnnotation]) // zero without one
		return n
	}
	slices.SortStableFunc(list, func(a, b *appsv1.ReplicaSet) int {
		return cmp.Or(number(b)-number(a), b.CreationTimestamp.Compare(a.CreationTimestamp.Time))
	})
	return list
}

// Selected returns the pods of a namespace that a selector picks.
func (s *Snapshot) Selected(namespace string, selector map[string]string) []*corev1.Pod {
	if len(selector) == 0 {
		return nil
	}
	return s.Matching(namespace, labels.SelectorFromSet(selector))
}

// Matching returns the pods of a namespace that match.
func (s *Snapshot) Matching(namespace string, selector labels.Selector) []*corev1.Pod {
	var out []*corev1.Pod
	for _, p := range All[*corev1.Pod](s, namespace) {
		if selector.Matches(labels.Set(p.Labels)) {
			out = append(out, p)
		}
	}
	return out
}

// Living leaves out pods that have ended.
func Living(pods []*corev1.Pod) []*corev1.Pod {
	return slices.DeleteFunc(slices.Clone(pods), func(p *corev1.Pod) bool {
		return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	})
}

// Slices returns the endpoint slices of a Service.
func (s *Snapshot) Slices(svc *corev1.Service) []*discoveryv1.EndpointSlice {
	return slices.DeleteFunc(All[*discoveryv1.EndpointSlice](s, svc.Namespace), func(e *discoveryv1.EndpointSlice) bool {
		return e.Labels[discoveryv1.LabelServiceName] != svc.Name
	})
}

// ReadyEndpoints counts the addresses of a Service that get traffic.
func (s *Snapshot) ReadyEndpoints(svc *corev1.Service) int {
	n := 0
	for _, slice := range s.Slices(svc) {
		for _, e := range slice.Endpoints {
			if e.Conditions.Ready == nil || *e.Conditions.Ready {
				n += len(e.Addresses)
			}
		}
	}
	return n
}

// PodClaims are the names of the claims that a pod mounts, those of its ephemeral
// volumes too.
func PodClaims(p *corev1.Pod) []string {
	var out []string
	for _, v := range p.Spec.Volumes {
		switch {
		case v.PersistentVolumeClaim != nil:
			out = append(out, v.PersistentVolumeClaim.ClaimName)
		case v.Ephemeral != nil:
			out = append(out, p.Name+"-"+v.Name)
		}
	}
	return out
}

// ContainerPort finds the number of a port of a pod by number or name. A number
// need not be declared; a name must.
func ContainerPort(p *corev1.Pod, port intstr.IntOrString, protocol corev1.Protocol) (number int32, declared bool) {
	for _, c := range Containers(&p.Spec) {
		for _, cp := range c.Ports {
			same := protocol == "" || cmp.Or(cp.Protocol, corev1.ProtocolTCP) == protocol
			if same && (port.Type == intstr.Int && cp.ContainerPort == port.IntVal || port.Type == intstr.String && cp.Name == port.StrVal) {
				return cp.ContainerPort, true
			}
		}
	}
	return port.IntVal, false
}

// Containers are those that run together: containers and restartable init containers.
func Containers(spec *corev1.PodSpec) []corev1.Container {
	var out []corev1.Container
	for _, c := range spec.InitContainers {
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			out = append(out, c)
		}
	}
	return append(out, spec.Containers...)
}
