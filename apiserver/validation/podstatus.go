package validation

import (
	"fmt"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	netutils "k8s.io/utils/net"
)

// PodStatusUpdate checks an update of pods/status.
func PodStatusUpdate(pod, old *corev1.Pod) field.ErrorList {
	c := newPodSpecCheck(&pod.Spec, &pod.ObjectMeta)
	c.annotationChanges(pod.Annotations, old.Annotations)
	c.podAnnotations(pod.Annotations, field.NewPath("metadata", "annotations"))
	status, at := &pod.Status, field.NewPath("status")
	for i, condition := range status.Conditions {
		p := at.Child("conditions").Index(i)
		if condition.ObservedGeneration < 0 {
			c.invalid(p.Child("observedGeneration"), condition.ObservedGeneration, "must be a non-negative integer")
		}
		switch condition.Type {
		case corev1.PodScheduled, corev1.PodReady, corev1.PodInitialized:
		default:
			c.add(QualifiedName(string(condition.Type), p.Child("Type"))...)
		}
	}
	if name := status.NominatedNodeName; name != "" && name != old.Status.NominatedNodeName {
		invalidChild(&c.errorList, at, "nominatedNodeName", name, apivalidation.NameIsDNSSubdomain(name, false))
		if old.Spec.NodeName != "" {
			c.forbidden(at.Child("nominatedNodeName"), "may not be set on pods that are already bound to a node")
		}
	}
	if status.ObservedGeneration < 0 {
		c.invalid(at.Child("observedGeneration"), status.ObservedGeneration, "must be a non-negative integer")
	}
	c.add(Immutable(status.QOSClass, old.Status.QOSClass, at.Child("qosClass"))...)

	c.restarts(status.ContainerStatuses, old.Status.ContainerStatuses, old.Spec.Containers, &old.Spec, at.Child("containerStatuses"))
	c.restarts(status.InitContainerStatuses, old.Status.InitContainerStatuses, old.Spec.InitContainers, &old.Spec, at.Child("initContainerStatuses"))
	c.ephemeralRestarts(status.EphemeralContainerStatuses, old.Status.EphemeralContainerStatuses, at.Child("ephemeralContainerStatuses"))
	c.claimStatuses(status.ResourceClaimStatuses, at.Child("resourceClaimStatuses"))
	c.extendedClaim(status.ExtendedResourceClaimStatus, at.Child("extendedResourceClaimStatus"))
	c.deviceHealth(status.ContainerStatuses, pod.Spec.Containers, status.ExtendedResourceClaimStatus, at.Child("containerStatuses"))
	c.deviceHealth(status.InitContainerStatuses, pod.Spec.InitContainers, status.ExtendedResourceClaimStatus, at.Child("initContainerStatuses"))
	for i := range status.EphemeralContainerStatuses {
		if status.EphemeralContainerStatuses[i].AllocatedResourcesStatus != nil {
			c.forbidden(at.Child("ephemeralContainerStatuses").Index(i).Child("allocatedResourcesStatus"), "must not be specified in container status")
		}
	}
	c.podAddresses(status, &old.Status, at)
	c.users(status.ContainerStatuses, at.Child("containerStatuses"))
	c.users(status.InitContainerStatuses, at.Child("initContainerStatuses"))
	c.users(status.EphemeralContainerStatuses, at.Child("ephemeralContainerStatuses"))
	return c.list
}

const stateError = "may not be transitioned to non-terminated state"

// restarts refuses that a terminated container runs again when nothing lets it
// restart.
func (c *podSpecCheck) restarts(now, old []corev1.ContainerStatus, containers []corev1.Container, spec *corev1.PodSpec, at *field.Path) {
	if anyRestartsAll(spec) {
		return
	}
	for i := range old {
		if old[i].State.Terminated == nil {
			continue
		}
		j := slices.IndexFunc(now, func(s corev1.ContainerStatus) bool { return s.Name == old[i].Name })
		if j < 0 || now[j].State.Terminated != nil {
			continue
		}
		k := slices.IndexFunc(containers, func(ctr corev1.Container) bool { return ctr.Name == old[i].Name })
		if k < 0 || !mayRestart(&containers[k], spec, old[i].State.Terminated.ExitCode) {
			c.forbidden(at.Index(i).Child("state"), stateError)
		}
	}
}

// anyRestartsAll reports that some container may restart all others (KEP-5532).
func anyRestartsAll(spec *corev1.PodSpec) bool {
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			for _, rule := range containers[i].RestartPolicyRules {
				if rule.Action == corev1.ContainerRestartRuleActionRestartAllContainers {
					return true
				}
			}
		}
	}
	return false
}

// mayRestart reports whether a container that ended with code is restarted: by
// the first of its rules that matches, else by its own policy, else by the pod's.
func mayRestart(ctr *corev1.Container, spec *corev1.PodSpec, code int32) bool {
	for _, rule := range ctr.RestartPolicyRules {
		if rule.ExitCodes == nil {
			continue
		}
		in := slices.Contains(rule.ExitCodes.Values, code)
		if in == (rule.ExitCodes.Operator == corev1.ContainerRestartRuleOnExitCodesOpIn) && rule.Action == corev1.ContainerRestartRuleActionRestart {
			return true
		}
	}
	policy := corev1.ContainerRestartPolicy(spec.RestartPolicy)
	if ctr.RestartPolicy != nil {
		policy = *ctr.RestartPolicy
	}
	switch policy {
	case corev1.ContainerRestartPolicyAlways:
		return true
	case corev1.ContainerRestartPolicyOnFailure:
		return code != 0
	default:
		return false
	}
}

func (c *podSpecCheck) ephemeralRestarts(now, old []corev1.ContainerStatus, at *field.Path) {
	for i := range old {
		if old[i].State.Terminated == nil {
			continue
		}
		j := slices.IndexFunc(now, func(s corev1.ContainerStatus) bool { return s.Name == old[i].Name })
		if j >= 0 && now[j].State.Terminated == nil {
			c.forbidden(at.Index(i).Child("state"), stateError)
		}
	}
}

func (c *podSpecCheck) claimStatuses(statuses []corev1.PodResourceClaimStatus, at *field.Path) {
	seen := names{}
	for i, s := range statuses {
		p := at.Index(i)
		if !c.claims.Has(s.Name) {
			c.invalid(p.Child("name"), s.Name, "must match the name of an entry in `spec.resourceClaims`")
		}
		if seen.seen(s.Name) {
			c.duplicate(p.Child("name"), s.Name)
		}
		if s.ResourceClaimName != nil {
			invalidChild(&c.errorList, p, "resourceClaimName", s.ResourceClaimName, apivalidation.NameIsDNSSubdomain(*s.ResourceClaimName, false))
		}
	}
}

func (c *podSpecCheck) podAddresses(status, old *corev1.PodStatus, at *field.Path) {
	podIPs, hostIPs, before := []string{}, []string{}, []string{}
	for _, ip := range status.PodIPs {
		podIPs = append(podIPs, ip.IP)
	}
	for _, ip := range old.PodIPs {
		before = append(before, ip.IP)
	}
	c.addressList(podIPs, before, status.PodIPs, at.Child("podIPs"))
	switch p := at.Child("podIPs"); {
	case (status.PodIP != "") != (len(podIPs) > 0):
		c.invalid(p, status.PodIPs, "podIP and podIPs must either both be set or both be unset")
	case len(podIPs) > 0 && status.PodIP != podIPs[0]:
		c.invalid(p.Index(0).Child("ip"), podIPs[0], "must be equal to `podIP`")
	}
	before = before[:0]
	for _, ip := range status.HostIPs {
		hostIPs = append(hostIPs, ip.IP)
	}
	for _, ip := range old.HostIPs {
		before = append(before, ip.IP)
	}
	if len(hostIPs) > 0 && status.HostIP != hostIPs[0] {
		c.invalid(at.Child("hostIPs").Index(0).Child("ip"), hostIPs[0], "must be equal to `hostIP`")
	}
	c.addressList(hostIPs, before, status.HostIPs, at.Child("hostIPs"))
}

// addressList checks at most one address of each family.
func (c *podSpecCheck) addressList(ips, old []string, value any, at *field.Path) {
	for i, ip := range ips {
		c.add(LegacyIP(at.Index(i), ip, old)...)
	}
	if len(ips) < 2 {
		return
	}
	dual, err := netutils.IsDualStackIPStrings(ips) // which also reads 010.0.0.1
	if err != nil {
		c.add(field.InternalError(at, fmt.Errorf("failed to check for dual stack with error:%w", err)))
	}
	if !dual || len(ips) > 2 {
		c.invalid(at, value, "may specify no more than one IP for each IP family")
	}
}

func (c *podSpecCheck) users(statuses []corev1.ContainerStatus, at *field.Path) {
	windows := c.spec.OS != nil && c.spec.OS.Name == corev1.Windows
	for i := range statuses {
		if statuses[i].User == nil || statuses[i].User.Linux == nil {
			continue
		}
		user, p := statuses[i].User.Linux, at.Index(i).Child("user", "linux")
		if windows {
			c.forbidden(p, "cannot be set for a windows pod")
			continue
		}
		if user.UID < 0 || user.UID > math.MaxUint32 {
			c.invalid(p.Child("uid"), user.UID, fmt.Sprintf("must be between 0 and %d, inclusive", int64(math.MaxUint32)))
		}
		invalidChild(&c.errorList, p, "gid", user.GID, validation.IsValidGroupID(user.GID))
		for j, group := range user.SupplementalGroups {
			c.invalidAll(p.Child("supplementalGroups").Index(j), group, validation.IsValidGroupID(group))
		}
	}
}
