package quota

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	resourcehelper "k8s.io/component-helpers/resource"
)

// The kinds that are measured by more than their number.
var (
	Pods     = schema.GroupResource{Resource: "pods"}
	Services = schema.GroupResource{Resource: "services"}
	Claims   = schema.GroupResource{Resource: "persistentvolumeclaims"}
)

// plain are the kinds of the core group whose number has a name without "count/".
var plain = map[string]bool{"configmaps": true, "secrets": true, "replicationcontrollers": true, "resourcequotas": true}

// classSuffix is between a storage class and what is counted of it.
const classSuffix = ".storageclass.storage.k8s.io/"

// hugepages begins the names of huge pages of a size.
const hugepages = "hugepages-"

var one = *resource.NewQuantity(1, resource.DecimalSI)

// Count is the name under which the objects of a kind are counted.
func Count(gr schema.GroupResource) corev1.ResourceName {
	return corev1.ResourceName("count/" + gr.String())
}

// Kind returns the kind that a name of a quota counts or measures; false: none is known
// by the name alone (amounts of extended resources are pods').
func Kind(name corev1.ResourceName) (schema.GroupResource, bool) {
	s := string(name)
	if rest, ok := strings.CutPrefix(s, "count/"); ok {
		return schema.ParseGroupResource(rest), true
	}
	for _, gr := range []schema.GroupResource{Pods, Services, Claims} {
		if Covers(gr, name) {
			return gr, true
		}
	}
	return schema.GroupResource{Resource: s}, plain[s]
}

// Covers reports whether objects of a kind can take from what a quota calls name.
func Covers(gr schema.GroupResource, name corev1.ResourceName) bool {
	if name == Count(gr) {
		return true
	}
	s := string(name)
	switch gr {
	case Pods:
		switch name {
		case corev1.ResourcePods, corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage,
			corev1.ResourceLimitsCPU, corev1.ResourceLimitsMemory, corev1.ResourceLimitsEphemeralStorage,
			corev1.ResourceRequestsCPU, corev1.ResourceRequestsMemory, corev1.ResourceRequestsEphemeralStorage:
			return true
		case corev1.ResourceRequestsStorage:
			return false
		}
		return strings.HasPrefix(s, hugepages) || strings.HasPrefix(s, corev1.DefaultResourceRequestsPrefix)
	case Services:
		return name == corev1.ResourceServices || name == corev1.ResourceServicesNodePorts || name == corev1.ResourceServicesLoadBalancers
	case Claims:
		return name == corev1.ResourcePersistentVolumeClaims || name == corev1.ResourceRequestsStorage || strings.Contains(s, classSuffix)
	}
	return gr.Group == "" && plain[gr.Resource] && s == gr.Resource
}

// Usage returns what an object takes, at a time.
func Usage(gr schema.GroupResource, obj runtime.Object, now time.Time) corev1.ResourceList {
	out := corev1.ResourceList{Count(gr): one}
	switch o := obj.(type) {
	case *corev1.Pod:
		podUsage(out, o, now)
	case *corev1.Service:
		serviceUsage(out, o)
	case *corev1.PersistentVolumeClaim:
		claimUsage(out, o)
	default:
		if gr.Group == "" && plain[gr.Resource] {
			out[corev1.ResourceName(gr.Resource)] = one
		}
	}
	return out
}

// Counts reports whether a pod takes more than its place among the objects: it has not
// ended, and its end is not overdue.
func Counts(pod *corev1.Pod, now time.Time) bool {
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return false
	}
	if pod.DeletionTimestamp != nil && pod.DeletionGracePeriodSeconds != nil {
		grace := time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second
		return !now.After(pod.DeletionTimestamp.Add(grace))
	}
	return true
}

func podUsage(out corev1.ResourceList, pod *corev1.Pod, now time.Time) {
	if !Counts(pod, now) {
		return
	}
	out[corev1.ResourcePods] = one
	options := resourcehelper.PodResourcesOptions{UseStatusResources: true}
	computeUsage(out, resourcehelper.PodRequests(pod, options), resourcehelper.PodLimits(pod, options))
}

// computeUsage names requests and limits as quotas do.
func computeUsage(out, requests, limits corev1.ResourceList) {
	for name, q := range requests {
		prefixed := corev1.DefaultResourceRequestsPrefix + name
		switch {
		case name == corev1.ResourceCPU, name == corev1.ResourceMemory, name == corev1.ResourceEphemeralStorage, strings.HasPrefix(string(name), hugepages):
			out[name], out[prefixed] = q, q
		case strings.Contains(string(name), "/"):
			out[prefixed] = q
		}
	}
	for name, q := range limits {
		switch name {
		case corev1.ResourceCPU:
			out[corev1.ResourceLimitsCPU] = q
		case corev1.ResourceMemory:
			out[corev1.ResourceLimitsMemory] = q
		case corev1.ResourceEphemeralStorage:
			out[corev1.ResourceLimitsEphemeralStorage] = q
		}
	}
}

func serviceUsage(out corev1.ResourceList, s *corev1.Service) {
	out[corev1.ResourceServices] = one
	ports := func(counts func(*corev1.ServicePort) bool) {
		n := int64(0)
		for i := range s.Spec.Ports {
			if counts(&s.Spec.Ports[i]) {
				n++
			}
		}
		out[corev1.ResourceServicesNodePorts] = *resource.NewQuantity(n, resource.DecimalSI)
	}
	all := func(*corev1.ServicePort) bool { return true }
	switch s.Spec.Type {
	case corev1.ServiceTypeNodePort:
		ports(all)
	case corev1.ServiceTypeLoadBalancer:
		out[corev1.ResourceServicesLoadBalancers] = one
		if given := s.Spec.AllocateLoadBalancerNodePorts; given != nil && !*given {
			ports(func(p *corev1.ServicePort) bool { return p.NodePort != 0 })
		} else {
			ports(all)
		}
	}
}

func claimUsage(out corev1.ResourceList, c *corev1.PersistentVolumeClaim) {
	class := c.Annotations[corev1.BetaStorageClassAnnotation]
	if class == "" && c.Spec.StorageClassName != nil {
		class = *c.Spec.StorageClassName
	}
	size := c.Spec.Resources.Requests[corev1.ResourceStorage]
	// While it is being expanded, or that has failed, what was allocated counts.
	if allocated := c.Status.AllocatedResources[corev1.ResourceStorage]; allocated.Cmp(size) > 0 {
		size = allocated
	}
	out[corev1.ResourcePersistentVolumeClaims], out[corev1.ResourceRequestsStorage] = one, size
	if class != "" {
		out[corev1.ResourceName(class+classSuffix)+corev1.ResourcePersistentVolumeClaims] = one
		out[corev1.ResourceName(class+classSuffix)+corev1.ResourceRequestsStorage] = size
	}
}
