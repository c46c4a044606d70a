package validation

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	resourcehelper "k8s.io/component-helpers/resource"
)

var (
	containerResources = sets.New(corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage)
	// standardResources are the names without a prefix that mean something in
	// quotas, limits and volumes.
	standardResources = containerResources.Union(sets.New(
		corev1.ResourceStorage, corev1.ResourcePods, corev1.ResourceQuotas, corev1.ResourceServices,
		corev1.ResourceReplicationControllers, corev1.ResourceSecrets, corev1.ResourceConfigMaps,
		corev1.ResourcePersistentVolumeClaims, corev1.ResourceServicesNodePorts, corev1.ResourceServicesLoadBalancers,
		corev1.ResourceRequestsCPU, corev1.ResourceRequestsMemory, corev1.ResourceRequestsStorage, corev1.ResourceRequestsEphemeralStorage,
		corev1.ResourceLimitsCPU, corev1.ResourceLimitsMemory, corev1.ResourceLimitsEphemeralStorage,
	))
	// wholeResources are counted in whole units.
	wholeResources = sets.New(corev1.ResourcePods, corev1.ResourceQuotas, corev1.ResourceServices,
		corev1.ResourceReplicationControllers, corev1.ResourceSecrets, corev1.ResourceConfigMaps,
		corev1.ResourcePersistentVolumeClaims, corev1.ResourceServicesNodePorts, corev1.ResourceServicesLoadBalancers)
)

func isHugePage(name corev1.ResourceName) bool {
	return strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

// isNative reports a resource of Kubernetes itself, not of a device plug-in.
func isNative(name corev1.ResourceName) bool {
	return !strings.Contains(string(name), "/") || strings.Contains(string(name), corev1.ResourceDefaultNamespacePrefix)
}

func isExtended(name corev1.ResourceName) bool {
	if isNative(name) || strings.HasPrefix(string(name), corev1.DefaultResourceRequestsPrefix) {
		return false
	}
	// The name must still be one with the prefix that quotas put before it.
	return len(validation.IsQualifiedName(corev1.DefaultResourceRequestsPrefix+string(name))) == 0
}

// Overcommit reports whether a request may be below its limit.
func Overcommit(name corev1.ResourceName) bool { return isNative(name) && !isHugePage(name) }

// isHugePageQuota reports an amount of huge pages, or of requests for them.
func isHugePageQuota(name corev1.ResourceName) bool {
	return isHugePage(name) || strings.HasPrefix(string(name), corev1.ResourceRequestsHugePagesPrefix)
}

// IsQuotaResource reports a resource without a prefix that quotas can be about.
func IsQuotaResource(name corev1.ResourceName) bool {
	return name != corev1.ResourceStorage && standardResources.Has(name) || isHugePageQuota(name)
}

// QuotaResourceName checks the name of a resource in a quota.
func QuotaResourceName(name corev1.ResourceName, path *field.Path) field.ErrorList {
	errs := ResourceName(name, path)
	if !strings.Contains(string(name), "/") && !IsQuotaResource(name) {
		errs = append(errs, field.Invalid(path, name, "must be a standard resource for quota"))
	}
	return errs
}

// ResourceName checks the name of a resource of any sort.
func ResourceName(name corev1.ResourceName, path *field.Path) field.ErrorList {
	var errs errorList
	errs.invalidAll(path, name, validation.IsQualifiedName(string(name)))
	if len(errs.list) == 0 && !strings.Contains(string(name), "/") && !standardResources.Has(name) && !isHugePageQuota(name) {
		errs.invalid(path, name, "must be a standard resource type or fully qualified")
	}
	return errs.list
}

// ContainerResourceName checks the name of a resource that a container may ask for.
func ContainerResourceName(name corev1.ResourceName, path *field.Path) field.ErrorList {
	errs := ResourceName(name, path)
	switch {
	case !strings.Contains(string(name), "/"):
		if !containerResources.Has(name) && !isHugePage(name) {
			errs = append(errs, field.Invalid(path, name, "must be a standard resource for containers"))
		}
	case !isNative(name) && !isExtended(name):
		errs = append(errs, field.Invalid(path, name, "doesn't follow extended resource name standard"))
	}
	return errs
}

func podResourceName(name corev1.ResourceName, path *field.Path) field.ErrorList {
	errs := ResourceName(name, path)
	if len(errs) == 0 && !resourcehelper.IsSupportedPodLevelResource(name) {
		errs = append(errs, field.NotSupported(path, name, sets.List(resourcehelper.SupportedPodLevelResources())))
	}
	return errs
}

// Quantity checks an amount of a resource.
func Quantity(name corev1.ResourceName, value resource.Quantity, path *field.Path) field.ErrorList {
	var errs errorList
	if value.Sign() < 0 {
		errs.invalid(path, value.String(), apivalidation.IsNegativeErrorMsg)
	}
	if (wholeResources.Has(name) || isExtended(name)) && value.MilliValue()%1000 != 0 {
		errs.invalid(path, value, notIntegerError)
	}
	return errs.list
}

// hugePages checks that an amount is a multiple of the page size in its name.
func hugePages(e *errorList, name corev1.ResourceName, value resource.Quantity, path *field.Path) {
	size, err := resource.ParseQuantity(strings.TrimPrefix(string(name), corev1.ResourceHugePagesPrefix))
	if err != nil || size.Sign() <= 0 || value.Value()%size.Value() != 0 {
		e.invalid(path, value.String(), fmt.Sprintf("%s is not positive integer multiple of %s", value.String(), name))
	}
}

// requirements checks requests and limits. nameRule differs between containers
// and pods; claims are the names in the pod's resourceClaims.
func requirements(r *corev1.ResourceRequirements, nameRule func(corev1.ResourceName, *field.Path) field.ErrorList, claims sets.Set[string], path *field.Path) field.ErrorList {
	var (
		e                errorList
		limits, requests = path.Child("limits"), path.Child("requests")
		compute, huge    bool
	)
	amount := func(name corev1.ResourceName, value resource.Quantity, at *field.Path) {
		e.add(nameRule(name, at)...)
		e.add(Quantity(name, value, at)...)
		if isHugePage(name) {
			huge = true
			hugePages(&e, name, value, at)
		}
		compute = compute || name == corev1.ResourceCPU || name == corev1.ResourceMemory
	}
	for _, name := range sortedNames(r.Limits) {
		amount(name, r.Limits[name], limits.Key(string(name)))
	}
	for _, name := range sortedNames(r.Requests) {
		value := r.Requests[name]
		amount(name, value, requests.Key(string(name)))
		limit, limited := r.Limits[name]
		switch {
		case limited && value.Cmp(limit) != 0 && !Overcommit(name):
			e.invalid(requests, value.String(), fmt.Sprintf("must be equal to %s limit of %s", name, limit.String()))
		case limited && value.Cmp(limit) > 0:
			e.invalid(requests, value.String(), fmt.Sprintf("must be less than or equal to %s limit of %s", name, limit.String()))
		case !limited && !Overcommit(name):
			e.required(limits, "Limit must be set for non overcommitable resources")
		}
	}
	if huge && !compute {
		e.forbidden(path, "HugePages require cpu or memory")
	}
	claimReferences(&e, r.Claims, claims, path.Child("claims"))
	return e.list
}

// claimReferences checks the claims that a container uses.
func claimReferences(e *errorList, refs []corev1.ResourceClaim, claims sets.Set[string], path *field.Path) {
	seen := sets.New[string]()
	for i, ref := range refs {
		at := path.Index(i)
		if ref.Name == "" {
			e.required(at, "")
			continue
		}
		key := ref.Name
		if ref.Request != "" && !seen.Has(ref.Name) {
			e.add(DNSLabel(ref.Request, at.Child("request"))...)
			key += "/" + ref.Request
		}
		switch {
		case seen.Has(ref.Name): // the whole claim is already used
			e.duplicate(at, ref.Name)
		case seen.Has(key):
			e.duplicate(at, key)
		case ref.Request == "":
			for _, other := range sets.List(seen) {
				if strings.HasPrefix(other, ref.Name+"/") {
					e.duplicate(at, ref.Name)
				}
			}
		}
		seen.Insert(key)
		if !claims.Has(ref.Name) {
			missing := field.NotFound(at, ref.Name)
			missing.Detail = "must be one of the names in pod.spec.resourceClaims"
			if len(claims) == 0 {
				missing.Detail += " which is empty"
			} else {
				missing.Detail += ": " + strings.Join(sets.List(claims), ", ")
			}
			e.add(missing)
		}
	}
}

func sortedNames(list corev1.ResourceList) []corev1.ResourceName {
	if len(list) == 0 {
		return nil
	}
	out := make([]corev1.ResourceName, 0, len(list))
	for name := range list {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// podLevel checks spec.resources of a pod against its containers.
func podLevel(spec *corev1.PodSpec, claims sets.Set[string], path *field.Path) field.ErrorList {
	r := spec.Resources
	if r == nil {
		return nil
	}
	at := path.Child("resources")
	if spec.OS != nil && spec.OS.Name == corev1.Windows {
		return field.ErrorList{field.Forbidden(at, "may not be set for a windows pod")}
	}
	var e errorList
	if r.Claims != nil {
		e.forbidden(at.Child("claims"), "claims may not be set for Resources at pod-level")
	}
	e.add(requirements(r, podResourceName, claims, at)...)

	pod := &corev1.Pod{Spec: *spec}
	pod.Spec.Resources = nil
	sum := resourcehelper.AggregateContainerRequests(pod, resourcehelper.PodResourcesOptions{})
	for _, name := range sortedNames(sum) {
		request, ok := r.Requests[name]
		if needed := sum[name]; ok && needed.Cmp(request) > 0 {
			e.invalid(at.Child("requests").Key(string(name)), request.String(),
				fmt.Sprintf("must be greater than or equal to aggregate container requests of %s", needed.String()))
		}
	}
	sum = resourcehelper.AggregateContainerLimits(pod, resourcehelper.PodResourcesOptions{})
	for _, name := range sortedNames(sum) {
		limit, ok := r.Limits[name]
		if needed := sum[name]; ok && isHugePage(name) && needed.Cmp(limit) > 0 {
			e.invalid(at.Child("limits").Key(string(name)), limit.String(),
				fmt.Sprintf("must be greater than or equal to aggregate container limits of %s", needed.String()))
		}
	}
	for i, c := range spec.Containers {
		for _, name := range sortedNames(c.Resources.Limits) {
			limit, ok := r.Limits[name]
			if own := c.Resources.Limits[name]; ok && own.Cmp(limit) > 0 {
				e.invalid(at.Child("containers").Index(i).Key(string(name)).Child("limits"), own.String(),
					fmt.Sprintf("must be less than or equal to pod limits of %s", limit.String()))
			}
		}
	}
	return e.list
}
