package resource

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/registry"
)

// adminAccess allows requests for devices that others use, too, only in namespaces
// whose label says so.
func adminAccess(objects registry.Reader, namespace string, spec *resourcev1.ResourceClaimSpec) field.ErrorList {
	i := slices.IndexFunc(spec.Devices.Requests, func(r resourcev1.DeviceRequest) bool {
		return r.Exactly != nil && r.Exactly.AdminAccess != nil && *r.Exactly.AdminAccess
	})
	if i < 0 || objects == nil {
		return nil
	}
	return labelled(objects, namespace, field.NewPath("spec", "devices", "requests").Index(i).Child("adminAccess"))
}

// adminResults is adminAccess for devices that were allocated; what old has was allowed.
func adminResults(objects registry.Reader, namespace string, a, old *resourcev1.AllocationResult) field.ErrorList {
	if i := firstAdmin(a); i >= 0 && firstAdmin(old) < 0 && objects != nil {
		return labelled(objects, namespace, field.NewPath("status", "allocation", "devices", "results").Index(i).Child("adminAccess"))
	}
	return nil
}

func firstAdmin(a *resourcev1.AllocationResult) int {
	if a == nil {
		return -1
	}
	return slices.IndexFunc(a.Devices.Results, func(r resourcev1.DeviceRequestAllocationResult) bool {
		return r.AdminAccess != nil && *r.AdminAccess
	})
}

func labelled(objects registry.Reader, namespace string, at *field.Path) field.ErrorList {
	ns, err := objects.Get(corev1.SchemeGroupVersion.WithResource("namespaces"), "", namespace)
	if err != nil {
		return field.ErrorList{field.InternalError(at, fmt.Errorf("could not retrieve namespace to verify admin access: %w", err))}
	}
	if ns.(*corev1.Namespace).Labels[resourcev1.DRAAdminNamespaceLabelKey] != "true" {
		return field.ErrorList{field.Forbidden(at, fmt.Sprintf("admin access to devices requires the `%s: true` label on the containing namespace", resourcev1.DRAAdminNamespaceLabelKey))}
	}
	return nil
}
