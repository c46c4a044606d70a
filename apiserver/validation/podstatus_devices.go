package validation

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// extendedClaim checks which claim stands for the extended resources of a pod
// (KEP-5004): each mapping names a container and a resource that it requests.
func (c *podSpecCheck) extendedClaim(s *corev1.PodExtendedResourceClaimStatus, at *field.Path) {
	if s == nil {
		return
	}
	mappings := at.Child("requestMappings")
	if len(s.RequestMappings) == 0 {
		c.required(mappings, "at least one request mapping is required")
	}
	for i, m := range s.RequestMappings {
		p := mappings.Index(i)
		if ctr := containerNamed(c.spec, m.ContainerName); ctr == nil {
			c.invalid(p.Child("containerName"), m.ContainerName, "must match the name of an entry in spec.initContainers.name or spec.containers.name")
		} else if _, ok := ctr.Resources.Requests[corev1.ResourceName(m.ResourceName)]; !ok {
			c.invalid(p.Child("resourceName"), m.ResourceName, "must match the extended resource name of an entry in spec.initContainers.resources.requests or spec.containers.resources.requests")
		}
		c.add(DNSLabel(m.RequestName, at.Child("requestName"))...)
		if slices.Contains(s.RequestMappings[:i], m) {
			c.duplicate(p.Child("containerName"), m.ContainerName)
			c.duplicate(p.Child("resourceName"), m.ResourceName)
			c.duplicate(p.Child("requestName"), m.RequestName)
		}
	}
	if name := at.Child("resourceClaimName"); s.ResourceClaimName == "" {
		c.required(name, "")
	} else {
		c.invalidAll(name, s.ResourceClaimName, apivalidation.NameIsDNSSubdomain(s.ResourceClaimName, false))
	}
}

func containerNamed(spec *corev1.PodSpec, name string) *corev1.Container {
	for _, list := range [][]corev1.Container{spec.Containers, spec.InitContainers} {
		for i := range list {
			if list[i].Name == name {
				return &list[i]
			}
		}
	}
	return nil
}

// deviceHealth checks what is said of the devices of containers (KEP-4680).
func (c *podSpecCheck) deviceHealth(statuses []corev1.ContainerStatus, containers []corev1.Container, extended *corev1.PodExtendedResourceClaimStatus, at *field.Path) {
	for i := range statuses {
		s := &statuses[i]
		for j, r := range s.AllocatedResourcesStatus {
			p := at.Index(i).Child("allocatedResourcesStatus").Index(j)
			if k := slices.IndexFunc(containers, func(ctr corev1.Container) bool { return ctr.Name == s.Name }); k >= 0 {
				c.allocated(r.Name, &containers[k], extended, p.Child("name"))
			}
			seen := map[corev1.ResourceID]bool{}
			for k, health := range r.Resources {
				at := p.Child("resources").Index(k)
				oneOfOrEmpty(&c.errorList, at.Child("health"), health.Health, corev1.ResourceHealthStatusHealthy, corev1.ResourceHealthStatusUnhealthy, corev1.ResourceHealthStatusUnknown)
				if m := health.Message; m != nil && *m == "" {
					c.required(at.Child("message"), "must be non-empty if specified")
				} else if m != nil && len(*m) > corev1.ResourceHealthMessageMaxLength {
					c.add(field.TooLong(at.Child("message"), *m, corev1.ResourceHealthMessageMaxLength))
				}
				if seen[health.ResourceID] {
					c.duplicate(at.Child("resourceID"), health.ResourceID)
				}
				seen[health.ResourceID] = true
			}
		}
	}
}

func (c *podSpecCheck) allocated(name corev1.ResourceName, ctr *corev1.Container, extended *corev1.PodExtendedResourceClaimStatus, at *field.Path) {
	if !strings.HasPrefix(string(name), "claim:") {
		if _, ok := ctr.Resources.Requests[name]; !ok {
			c.invalid(at, name, "must match one of the container's resource requests")
		}
		return
	}
	named := func(claim, request string) corev1.ResourceName {
		if request != "" {
			claim += "/" + request
		}
		return corev1.ResourceName("claim:" + claim)
	}
	found := slices.ContainsFunc(ctr.Resources.Claims, func(r corev1.ResourceClaim) bool { return named(r.Name, r.Request) == name })
	if !found && extended != nil {
		found = slices.ContainsFunc(extended.RequestMappings, func(m corev1.ContainerExtendedResourceRequest) bool {
			return m.ContainerName == ctr.Name && named(extended.ResourceClaimName, m.RequestName) == name
		})
	}
	if !found {
		c.invalid(at, name, "must match one of the container's resource claims as 'claim:<claimName>/<requestName>' when container.resources.claims[*].request is set or 'claim:<claimName>' when it is empty")
	}
}
