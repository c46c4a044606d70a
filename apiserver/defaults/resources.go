package defaults

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Resources rounds quantities up to thousandths, the finest unit of the API.
func Resources(list corev1.ResourceList) {
	for name, quantity := range list {
		if quantity.RoundUp(resource.Milli) {
			continue // already a multiple
		}
		list[name] = quantity
	}
}

func requirements(r *corev1.ResourceRequirements) {
	if r != nil {
		Resources(r.Limits)
		Resources(r.Requests)
	}
}

// requestsFromLimits requests what is limited and not requested.
func requestsFromLimits(r *corev1.ResourceRequirements) {
	if r.Limits == nil {
		return
	}
	if r.Requests == nil {
		r.Requests = corev1.ResourceList{}
	}
	for name, quantity := range r.Limits {
		if _, ok := r.Requests[name]; !ok {
			r.Requests[name] = quantity.DeepCopy()
		}
	}
}
