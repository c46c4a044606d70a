package validation

import (
	"fmt"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var (
	controlCharacters = regexp.MustCompile(`[[:cntrl:]]+`)
	netBIOSName       = regexp.MustCompile(`^[^\\/:\*\?"<>|\.][^\\/:\*\?"<>|]{0,14}$`)
	windowsDomain     = regexp.MustCompile(`^[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)*$`)
	badUserCharacters = regexp.MustCompile(`["/\\:;|=,\+\*\?<>@\[\]]`)
	onlyDotsAndSpaces = regexp.MustCompile(`^[\. ]+$`)
)

func windowsOptions(e *errorList, w *corev1.WindowsSecurityContextOptions, at *field.Path) {
	if w == nil {
		return
	}
	if name := w.GMSACredentialSpecName; name != nil {
		invalidChild(e, at, "gmsaCredentialSpecName", name, validation.IsDNS1123Subdomain(*name))
	}
	if spec := w.GMSACredentialSpec; spec != nil {
		switch n := len(*spec); {
		case n == 0:
			e.invalid(at.Child("gmsaCredentialSpec"), spec, "gmsaCredentialSpec cannot be an empty string")
		case n > 64*1024:
			e.invalid(at.Child("gmsaCredentialSpec"), spec, "gmsaCredentialSpec size must be under 64 KiB")
		}
	}
	if w.RunAsUserName != nil {
		windowsUser(e, *w.RunAsUserName, at.Child("runAsUserName"))
	}
}

// windowsUser checks DOMAIN\user or user.
func windowsUser(e *errorList, name string, at *field.Path) {
	domain, user, hasDomain := strings.Cut(name, `\`)
	if !hasDomain {
		domain, user = "", name
	}
	switch {
	case name == "":
		e.invalid(at, name, "runAsUserName cannot be an empty string")
		return
	case controlCharacters.MatchString(name):
		e.invalid(at, &name, "runAsUserName cannot contain control characters") // by pointer: printed as JSON, as upstream
		return
	case strings.Contains(user, `\`):
		e.invalid(at, name, "runAsUserName cannot contain more than one backslash")
		return
	}
	if len(domain) >= 256 {
		e.invalid(at, name, "runAsUserName's Domain length must be under 256 characters")
	}
	if hasDomain && !netBIOSName.MatchString(domain) && !windowsDomain.MatchString(domain) {
		e.invalid(at, name, "runAsUserName's Domain doesn't match the NetBios nor the DNS format")
	}
	switch n := len(user); {
	case n == 0:
		e.invalid(at, name, "runAsUserName's User cannot be empty")
	case n > 104:
		e.invalid(at, name, "runAsUserName's User length must not be longer than 104 characters")
	}
	if onlyDotsAndSpaces.MatchString(user) {
		e.invalid(at, name, `runAsUserName's User cannot contain only periods or spaces`)
	}
	if badUserCharacters.MatchString(user) {
		e.invalid(at, name, `runAsUserName's User cannot contain the following characters: "/\:;|=,+*?<>@[]`)
	}
}

// operatingSystem checks spec.os and that nothing of the other system is set.
func (c *podSpecCheck) operatingSystem(at *field.Path) {
	os := c.spec.OS
	switch {
	case os == nil:
	case os.Name == "":
		c.required(at.Child("os", "name"), "")
	case os.Name == corev1.Linux:
		c.notForLinux(at)
	case os.Name == corev1.Windows:
		c.notForWindows(at)
	default:
		c.add(field.NotSupported(at.Child("os"), os.Name, []corev1.OSName{corev1.Linux, corev1.Windows}))
	}
}

func (c *podSpecCheck) notForLinux(at *field.Path) {
	const detail = "windows options cannot be set for a linux pod"
	if s := c.spec.SecurityContext; s != nil && s.WindowsOptions != nil {
		c.forbidden(at.Child("securityContext", "windowsOptions"), detail)
	}
	c.eachContainer(at, func(ctr *corev1.Container, p *field.Path) {
		if s := ctr.SecurityContext; s != nil && s.WindowsOptions != nil {
			c.forbidden(p.Child("securityContext", "windowsOptions"), detail)
		}
	})
}

func (c *podSpecCheck) notForWindows(at *field.Path) {
	type setting struct {
		name  string
		given bool
	}
	refuse := func(at *field.Path, settings ...setting) {
		for _, s := range settings {
			if s.given {
				c.forbidden(at.Child(s.name), "cannot be set for a windows pod")
			}
		}
	}
	if s := c.spec.SecurityContext; s != nil {
		refuse(at.Child("securityContext"),
			setting{"appArmorProfile", s.AppArmorProfile != nil}, setting{"seLinuxOptions", s.SELinuxOptions != nil},
			setting{"seccompProfile", s.SeccompProfile != nil}, setting{"fsGroup", s.FSGroup != nil},
			setting{"fsGroupChangePolicy", s.FSGroupChangePolicy != nil}, setting{"sysctls", len(s.Sysctls) > 0},
			setting{"runAsUser", s.RunAsUser != nil}, setting{"runAsGroup", s.RunAsGroup != nil},
			setting{"supplementalGroups", s.SupplementalGroups != nil}, setting{"supplementalGroupsPolicy", s.SupplementalGroupsPolicy != nil},
			setting{"seLinuxChangePolicy", s.SELinuxChangePolicy != nil})
	}
	refuse(at, setting{"hostUsers", c.spec.HostUsers != nil}, setting{"hostPID", c.spec.HostPID},
		setting{"hostIPC", c.spec.HostIPC}, setting{"shareProcessNamespace", c.spec.ShareProcessNamespace != nil})
	c.eachContainer(at, func(ctr *corev1.Container, p *field.Path) {
		if s := ctr.SecurityContext; s != nil {
			refuse(p.Child("securityContext"),
				setting{"appArmorProfile", s.AppArmorProfile != nil}, setting{"seLinuxOptions", s.SELinuxOptions != nil},
				setting{"seccompProfile", s.SeccompProfile != nil}, setting{"capabilities", s.Capabilities != nil},
				setting{"readOnlyRootFilesystem", s.ReadOnlyRootFilesystem != nil}, setting{"privileged", s.Privileged != nil},
				setting{"allowPrivilegeEscalation", s.AllowPrivilegeEscalation != nil}, setting{"procMount", s.ProcMount != nil},
				setting{"runAsUser", s.RunAsUser != nil}, setting{"runAsGroup", s.RunAsGroup != nil})
		}
	})
}

// hostProcess checks that either all containers or none are Windows host processes.
func (c *podSpecCheck) hostProcess(at *field.Path) {
	of := func(w *corev1.WindowsSecurityContextOptions) *bool {
		if w == nil {
			return nil
		}
		return w.HostProcess
	}
	var pod *bool
	if s := c.spec.SecurityContext; s != nil {
		pod = of(s.WindowsOptions)
	}
	containers, processes := 0, 0
	c.eachContainer(at, func(ctr *corev1.Container, p *field.Path) {
		containers++
		var own *bool
		if s := ctr.SecurityContext; s != nil {
			own = of(s.WindowsOptions)
		}
		if pod != nil && own != nil && *pod != *own {
			c.invalid(p.Child("securityContext", "windowsOptions", "hostProcess"), *own,
				fmt.Sprintf("pod hostProcess value must be identical if both are specified, was %v", *pod))
		}
		if own != nil && *own || own == nil && pod != nil && *pod {
			processes++
		}
	})
	if processes == 0 {
		return
	}
	if processes != containers {
		c.invalid(at, "", "If pod contains any hostProcess containers then all containers must be HostProcess containers")
	}
	if !c.spec.HostNetwork {
		c.invalid(at.Child("hostNetwork"), false, "hostNetwork must be true if pod contains any hostProcess containers")
	}
}
