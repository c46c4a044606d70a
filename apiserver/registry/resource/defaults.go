package resource

import (
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// defaultRequests makes requests ask for one device.
func defaultRequests(spec *resourcev1.ResourceClaimSpec) {
	one := func(mode *resourcev1.DeviceAllocationMode, count *int64) {
		if *mode == "" {
			*mode = resourcev1.DeviceAllocationModeExactCount
		}
		if *mode == resourcev1.DeviceAllocationModeExactCount && *count == 0 {
			*count = 1
		}
	}
	for i := range spec.Devices.Requests {
		r := &spec.Devices.Requests[i]
		if r.Exactly != nil {
			one(&r.Exactly.AllocationMode, &r.Exactly.Count)
			equalTolerations(r.Exactly.Tolerations)
		}
		for j := range r.FirstAvailable {
			one(&r.FirstAvailable[j].AllocationMode, &r.FirstAvailable[j].Count)
			equalTolerations(r.FirstAvailable[j].Tolerations)
		}
	}
}

// equalTolerations compare values unless they say otherwise.
func equalTolerations(list []resourcev1.DeviceToleration) {
	for i := range list {
		if list[i].Operator == "" {
			list[i].Operator = resourcev1.DeviceTolerationOpEqual
		}
	}
}

// stamp notes when a taint was added.
func stamp(taint *resourcev1.DeviceTaint) {
	if taint.TimeAdded == nil {
		taint.TimeAdded = &metav1.Time{Time: time.Now().Truncate(time.Second)}
	}
}
