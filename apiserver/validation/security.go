package validation

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const maxSysctl = 253

// sysctlName allows '.' and '/' as separators.
var sysctlName = regexp.MustCompile(`^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$`)

// podSecurity checks the security context of the pod.
func (c *podSpecCheck) podSecurity(at *field.Path) {
	s := c.spec.SecurityContext
	if s == nil {
		return
	}
	e := &c.errorList
	if s.FSGroup != nil {
		invalidChild(e, at, "fsGroup", *s.FSGroup, validation.IsValidGroupID(*s.FSGroup))
	}
	userAndGroup(e, s.RunAsUser, s.RunAsGroup, at)
	for i, group := range s.SupplementalGroups {
		e.invalidAll(at.Child("supplementalGroups").Index(i), group, validation.IsValidGroupID(group))
	}
	c.sysctls(s.Sysctls, at.Child("sysctls"))
	if s.FSGroupChangePolicy != nil {
		oneOfOrEmpty(e, at.Child("fsGroupChangePolicy"), *s.FSGroupChangePolicy, corev1.FSGroupChangeAlways, corev1.FSGroupChangeOnRootMismatch)
	}
	seccomp(e, s.SeccompProfile, at.Child("seccompProfile"))
	windowsOptions(e, s.WindowsOptions, at.Child("windowsOptions"))
	AppArmor(e, s.AppArmorProfile, at.Child("appArmorProfile"))
	if s.SupplementalGroupsPolicy != nil {
		oneOfOrEmpty(e, at.Child("supplementalGroupsPolicy"), *s.SupplementalGroupsPolicy, corev1.SupplementalGroupsPolicyMerge, corev1.SupplementalGroupsPolicyStrict)
	}
	if s.SELinuxChangePolicy != nil {
		oneOfOrEmpty(e, at.Child("seLinuxChangePolicy"), *s.SELinuxChangePolicy, corev1.SELinuxChangePolicyMountOption, corev1.SELinuxChangePolicyRecursive)
	}
}

func userAndGroup(e *errorList, user, group *int64, at *field.Path) {
	if user != nil {
		invalidChild(e, at, "runAsUser", *user, validation.IsValidUserID(*user))
	}
	if group != nil {
		invalidChild(e, at, "runAsGroup", *group, validation.IsValidGroupID(*group))
	}
}

func (c *podSpecCheck) sysctls(list []corev1.Sysctl, at *field.Path) {
	seen := names{}
	for i, s := range list {
		p := at.Index(i).Child("name")
		switch {
		case s.Name == "":
			c.required(p, "")
		case len(s.Name) > maxSysctl || !sysctlName.MatchString(s.Name):
			c.invalid(p, s.Name, fmt.Sprintf("must have at most %d characters and match regex %s", maxSysctl, sysctlName))
		case seen.seen(s.Name):
			c.duplicate(p, s.Name)
		}
		name := strings.ReplaceAll(s.Name, "/", ".")
		switch {
		case c.spec.HostNetwork && strings.HasPrefix(name, "net."):
			c.invalid(p, s.Name, "may not be specified when 'hostNetwork' is true")
		case c.spec.HostIPC && ipcSysctl(name):
			c.invalid(p, s.Name, "may not be specified when 'hostIPC' is true")
		}
	}
}

// ipcSysctl reports a sysctl that belongs to the IPC namespace.
func ipcSysctl(name string) bool {
	return name == "kernel.sem" || strings.HasPrefix(name, "kernel.shm") || strings.HasPrefix(name, "kernel.msg") || strings.HasPrefix(name, "fs.mqueue.")
}

// containerSecurity checks the security context of a container; hostUsers says
// whether the pod shares the host's user namespace.
func containerSecurity(e *errorList, s *corev1.SecurityContext, at *field.Path, hostUsers bool) {
	if s == nil {
		return
	}
	userAndGroup(e, s.RunAsUser, s.RunAsGroup, at)
	if s.ProcMount != nil {
		oneOfOrEmpty(e, at.Child("procMount"), *s.ProcMount, corev1.DefaultProcMount, corev1.UnmaskedProcMount)
		if hostUsers && *s.ProcMount == corev1.UnmaskedProcMount {
			e.invalid(at.Child("procMount"), s.ProcMount, "`hostUsers` must be false to use `Unmasked`")
		}
	}
	seccomp(e, s.SeccompProfile, at.Child("seccompProfile"))
	if s.AllowPrivilegeEscalation != nil && !*s.AllowPrivilegeEscalation {
		if s.Privileged != nil && *s.Privileged {
			e.invalid(at, s, "cannot set `allowPrivilegeEscalation` to false and `privileged` to true")
		}
		if s.Capabilities != nil && slices.Contains(s.Capabilities.Add, "CAP_SYS_ADMIN") {
			e.invalid(at, s, "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN")
		}
	}
	windowsOptions(e, s.WindowsOptions, at.Child("windowsOptions"))
	AppArmor(e, s.AppArmorProfile, at.Child("appArmorProfile"))
}

func seccomp(e *errorList, p *corev1.SeccompProfile, at *field.Path) {
	if p == nil {
		return
	}
	if p.Type == "" {
		e.required(at.Child("type"), "type is required when seccompProfile is set")
	} else {
		oneOfChild(e, at, "type", p.Type, corev1.SeccompProfileTypeLocalhost, corev1.SeccompProfileTypeRuntimeDefault, corev1.SeccompProfileTypeUnconfined)
	}
	switch file := at.Child("localhostProfile"); {
	case p.Type != corev1.SeccompProfileTypeLocalhost && p.LocalhostProfile != nil:
		e.invalid(file, p, "can only be set when seccomp type is Localhost")
	case p.Type == corev1.SeccompProfileTypeLocalhost && p.LocalhostProfile == nil:
		e.required(file, "must be set when seccomp type is Localhost")
	case p.Type == corev1.SeccompProfileTypeLocalhost:
		e.add(relativePath(*p.LocalhostProfile, file)...)
	}
}

// AppArmor checks an AppArmor profile; nil is fine.
func AppArmor(e *errorList, p *corev1.AppArmorProfile, at *field.Path) {
	if p == nil {
		return
	}
	const longestPath = 4095
	file := at.Child("localhostProfile")
	switch p.Type {
	case corev1.AppArmorProfileTypeLocalhost:
		if p.LocalhostProfile == nil {
			e.required(file, "must be set when AppArmor type is Localhost")
			return
		}
		switch trimmed := strings.TrimSpace(*p.LocalhostProfile); {
		case trimmed != *p.LocalhostProfile:
			e.invalid(file, *p.LocalhostProfile, "must not be padded with whitespace")
		case trimmed == "":
			e.required(file, "must be set when AppArmor type is Localhost")
		}
		if len(*p.LocalhostProfile) > longestPath {
			e.add(field.TooLong(file, "", longestPath))
		}
	case corev1.AppArmorProfileTypeRuntimeDefault, corev1.AppArmorProfileTypeUnconfined:
		if p.LocalhostProfile != nil {
			e.invalid(file, p.LocalhostProfile, "can only be set when AppArmor type is Localhost")
		}
	case "":
		e.required(at.Child("type"), "type is required when appArmorProfile is set")
	default:
		e.add(field.NotSupported(at.Child("type"), p.Type, []corev1.AppArmorProfileType{
			corev1.AppArmorProfileTypeLocalhost, corev1.AppArmorProfileTypeRuntimeDefault, corev1.AppArmorProfileTypeUnconfined}))
	}
}

// profileAnnotations checks that the deprecated annotations for seccomp and
// AppArmor say the same as the fields that replaced them.
func (c *podSpecCheck) profileAnnotations(annotations map[string]string, at *field.Path) {
	if len(annotations) == 0 {
		return
	}
	pod := c.spec.SecurityContext
	if pod != nil {
		seccompAnnotation(&c.errorList, annotations, corev1.SeccompPodAnnotationKey, pod.SeccompProfile, at.Child("securityContext", "seccompProfile"))
	}
	windows := c.spec.OS != nil && c.spec.OS.Name == corev1.Windows
	c.eachContainer(at, func(ctr *corev1.Container, p *field.Path) {
		security := p.Child("securityContext")
		if ctr.SecurityContext != nil {
			seccompAnnotation(&c.errorList, annotations, corev1.SeccompContainerAnnotationKeyPrefix+ctr.Name, ctr.SecurityContext.SeccompProfile, security.Child("seccompProfile"))
		}
		if windows {
			return
		}
		var profile *corev1.AppArmorProfile
		if pod != nil {
			profile = pod.AppArmorProfile
		}
		if ctr.SecurityContext != nil && ctr.SecurityContext.AppArmorProfile != nil {
			profile = ctr.SecurityContext.AppArmorProfile
		}
		appArmorAnnotation(&c.errorList, annotations, ctr.Name, profile, security.Child("appArmorProfile"))
	})
}

func seccompAnnotation(e *errorList, annotations map[string]string, key string, p *corev1.SeccompProfile, at *field.Path) {
	value, ok := annotations[key]
	if !ok || p == nil {
		return
	}
	const differs = "seccomp type in annotation and field must match"
	switch p.Type {
	case corev1.SeccompProfileTypeUnconfined:
		if value != corev1.SeccompProfileNameUnconfined {
			e.forbidden(at.Child("type"), differs)
		}
	case corev1.SeccompProfileTypeRuntimeDefault:
		if value != corev1.SeccompProfileRuntimeDefault && value != corev1.DeprecatedSeccompProfileDockerDefault {
			e.forbidden(at.Child("type"), differs)
		}
	case corev1.SeccompProfileTypeLocalhost:
		file, ok := strings.CutPrefix(value, corev1.SeccompLocalhostProfileNamePrefix)
		if !ok {
			e.forbidden(at.Child("type"), differs)
		} else if p.LocalhostProfile == nil || *p.LocalhostProfile != file {
			e.forbidden(at.Child("localhostProfile"), "seccomp profile in annotation and field must match")
		}
	}
}

func appArmorAnnotation(e *errorList, annotations map[string]string, container string, p *corev1.AppArmorProfile, at *field.Path) {
	value, ok := annotations[corev1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix+container]
	if !ok || p == nil {
		return
	}
	const differs = "apparmor type in annotation and field must match"
	switch p.Type {
	case corev1.AppArmorProfileTypeUnconfined:
		if value != corev1.DeprecatedAppArmorBetaProfileNameUnconfined {
			e.forbidden(at.Child("type"), differs)
		}
	case corev1.AppArmorProfileTypeRuntimeDefault:
		if value != corev1.DeprecatedAppArmorBetaProfileRuntimeDefault {
			e.forbidden(at.Child("type"), differs)
		}
	case corev1.AppArmorProfileTypeLocalhost:
		file, ok := strings.CutPrefix(value, corev1.DeprecatedAppArmorBetaProfileNamePrefix)
		if !ok {
			e.forbidden(at.Child("type"), differs)
		} else if p.LocalhostProfile == nil || *p.LocalhostProfile != file {
			e.forbidden(at.Child("localhostProfile"), "apparmor profile in annotation and field must match")
		}
	}
}
