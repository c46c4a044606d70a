package kubelet

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/periplus/periplus/kubelet/image"
)

// Paths hidden and write-protected in containers with the default proc mount.
var (
	maskedPaths = []string{
		"/proc/asound", "/proc/acpi", "/proc/interrupts", "/proc/kcore", "/proc/keys", "/proc/latency_stats",
		"/proc/timer_list", "/proc/timer_stats", "/proc/sched_debug", "/proc/scsi", "/sys/firmware",
		"/sys/devices/virtual/powercap",
	}
	readonlyPaths = []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}
)

// namespaces says which namespaces a pod has of its own.
func namespaces(pod *corev1.Pod) *runtimeapi.NamespaceOption {
	o := &runtimeapi.NamespaceOption{
		Network: runtimeapi.NamespaceMode_POD, Ipc: runtimeapi.NamespaceMode_POD, Pid: runtimeapi.NamespaceMode_CONTAINER,
	}
	if pod.Spec.HostNetwork {
		o.Network = runtimeapi.NamespaceMode_NODE
	}
	if pod.Spec.HostIPC {
		o.Ipc = runtimeapi.NamespaceMode_NODE
	}
	switch {
	case pod.Spec.HostPID:
		o.Pid = runtimeapi.NamespaceMode_NODE
	case pod.Spec.ShareProcessNamespace != nil && *pod.Spec.ShareProcessNamespace:
		o.Pid = runtimeapi.NamespaceMode_POD
	}
	return o
}

func sandboxSecurity(pod *corev1.Pod) *runtimeapi.LinuxSandboxSecurityContext {
	s := &runtimeapi.LinuxSandboxSecurityContext{
		NamespaceOptions: namespaces(pod),
		Seccomp:          &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_RuntimeDefault},
	}
	for i := range pod.Spec.Containers {
		if sc := pod.Spec.Containers[i].SecurityContext; sc != nil && sc.Privileged != nil && *sc.Privileged {
			s.Privileged = true
		}
	}
	sc := pod.Spec.SecurityContext
	if sc == nil {
		return s
	}
	s.RunAsUser, s.RunAsGroup = int64Value(sc.RunAsUser), int64Value(sc.RunAsGroup)
	s.SelinuxOptions = selinux(sc.SELinuxOptions)
	s.SupplementalGroups, s.SupplementalGroupsPolicy = groups(sc)
	return s
}

func groups(sc *corev1.PodSecurityContext) ([]int64, runtimeapi.SupplementalGroupsPolicy) {
	var ids []int64
	if sc.FSGroup != nil {
		ids = append(ids, *sc.FSGroup)
	}
	ids = append(ids, sc.SupplementalGroups...)
	if sc.SupplementalGroupsPolicy != nil && *sc.SupplementalGroupsPolicy == corev1.SupplementalGroupsPolicyStrict {
		return ids, runtimeapi.SupplementalGroupsPolicy_Strict
	}
	return ids, runtimeapi.SupplementalGroupsPolicy_Merge
}

// containerSecurity merges the pod's and the container's security context; the
// container's fields win. img tells the image's user.
func containerSecurity(pod *corev1.Pod, c *corev1.Container, img image.Result, targetID string) (*runtimeapi.LinuxContainerSecurityContext, error) {
	psc, sc := pod.Spec.SecurityContext, c.SecurityContext
	if psc == nil {
		psc = &corev1.PodSecurityContext{}
	}
	if sc == nil {
		sc = &corev1.SecurityContext{}
	}
	user := first(sc.RunAsUser, psc.RunAsUser)
	group := first(sc.RunAsGroup, psc.RunAsGroup)
	if nonRoot := first(sc.RunAsNonRoot, psc.RunAsNonRoot); nonRoot != nil && *nonRoot {
		if err := verifyNonRoot(pod, c, user, img); err != nil {
			return nil, err
		}
	}
	out := &runtimeapi.LinuxContainerSecurityContext{
		NamespaceOptions: namespaces(pod),
		RunAsGroup:       int64Value(group),
		NoNewPrivs:       sc.AllowPrivilegeEscalation != nil && !*sc.AllowPrivilegeEscalation,
		Privileged:       sc.Privileged != nil && *sc.Privileged,
		ReadonlyRootfs:   sc.ReadOnlyRootFilesystem != nil && *sc.ReadOnlyRootFilesystem,
		SelinuxOptions:   selinux(first(sc.SELinuxOptions, psc.SELinuxOptions)),
		Seccomp:          seccomp(first(sc.SeccompProfile, psc.SeccompProfile)),
		Apparmor:         apparmor(first(sc.AppArmorProfile, psc.AppArmorProfile)),
	}
	switch {
	case user != nil:
		out.RunAsUser = int64Value(user)
	case img.UID != nil:
		out.RunAsUser = int64Value(img.UID)
	case img.Username != "":
		out.RunAsUsername = img.Username
	default:
		out.RunAsUser = &runtimeapi.Int64Value{}
	}
	if out.Privileged {
		out.Seccomp = seccomp(sc.SeccompProfile)
	}
	out.SupplementalGroups, out.SupplementalGroupsPolicy = groups(psc)
	if targetID != "" {
		out.NamespaceOptions.Pid, out.NamespaceOptions.TargetId = runtimeapi.NamespaceMode_TARGET, targetID
	}
	if caps := sc.Capabilities; caps != nil {
		out.Capabilities = &runtimeapi.Capability{}
		for _, v := range caps.Add {
			out.Capabilities.AddCapabilities = append(out.Capabilities.AddCapabilities, string(v))
		}
		for _, v := range caps.Drop {
			out.Capabilities.DropCapabilities = append(out.Capabilities.DropCapabilities, string(v))
		}
	}
	if !out.Privileged && (sc.ProcMount == nil || *sc.ProcMount == corev1.DefaultProcMount) {
		out.MaskedPaths, out.ReadonlyPaths = maskedPaths, readonlyPaths
	}
	return out, nil
}

func verifyNonRoot(pod *corev1.Pod, c *corev1.Container, user *int64, img image.Result) error {
	switch {
	case user != nil && *user == 0:
		return fmt.Errorf("container's runAsUser breaks non-root policy (pod: %q, container: %s)", podKey(pod), c.Name)
	case user != nil:
		return nil
	case img.UID != nil && *img.UID == 0, img.UID == nil && img.Username == "":
		return fmt.Errorf("container has runAsNonRoot and image will run as root (pod: %q, container: %s)", podKey(pod), c.Name)
	case img.UID == nil:
		return fmt.Errorf("container has runAsNonRoot and image has non-numeric user (%s), cannot verify user is non-root (pod: %q, container: %s)", img.Username, podKey(pod), c.Name)
	}
	return nil
}

func first[T any](a, b *T) *T {
	if a != nil {
		return a
	}
	return b
}

func int64Value(v *int64) *runtimeapi.Int64Value {
	if v == nil {
		return nil
	}
	return &runtimeapi.Int64Value{Value: *v}
}

func selinux(o *corev1.SELinuxOptions) *runtimeapi.SELinuxOption {
	if o == nil {
		return nil
	}
	return &runtimeapi.SELinuxOption{User: o.User, Role: o.Role, Type: o.Type, Level: o.Level}
}

// seccomp without a profile is unconfined, as upstream's default is.
func seccomp(p *corev1.SeccompProfile) *runtimeapi.SecurityProfile {
	if p != nil {
		switch p.Type {
		case corev1.SeccompProfileTypeRuntimeDefault:
			return &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_RuntimeDefault}
		case corev1.SeccompProfileTypeLocalhost:
			if p.LocalhostProfile != nil {
				return &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_Localhost,
					LocalhostRef: "/var/lib/kubelet/seccomp/" + *p.LocalhostProfile}
			}
		}
	}
	return &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_Unconfined}
}

func apparmor(p *corev1.AppArmorProfile) *runtimeapi.SecurityProfile {
	if p == nil {
		return nil
	}
	switch p.Type {
	case corev1.AppArmorProfileTypeRuntimeDefault:
		return &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_RuntimeDefault}
	case corev1.AppArmorProfileTypeLocalhost:
		if p.LocalhostProfile != nil {
			return &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_Localhost, LocalhostRef: *p.LocalhostProfile}
		}
	}
	return &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_Unconfined}
}
