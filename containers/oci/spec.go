package oci

import (
	"errors"
	"fmt"
	"maps"

	imagespec "github.com/opencontainers/image-spec/specs-go/v1"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Host is what the configuration depends on of the machine.
type Host struct {
	Capabilities  []string // those that we have and can give
	OOMScoreFloor int      // the lowest oom_score_adj that we may set
	Swap          bool     // swap can be limited
	Hugetlb       bool     // huge pages can be limited
	Seccomp       bool     // the kernel filters system calls
	AppArmor      bool     // enabled
	CgroupV2      bool
	SeccompDir    string // Localhost profiles with a relative name are found here
}

// Input is everything about one container.
type Input struct {
	ID      string
	Config  *runtimeapi.ContainerConfig
	Sandbox *runtimeapi.PodSandboxConfig
	Image   imagespec.ImageConfig
	Rootfs  string // mounted root file system
	Host    Host

	CgroupsPath string
	Namespaces  Namespaces
	Files       Files
}

// Namespaces are paths of those that exist already; what is empty and not Host
// is made for the container.
type Namespaces struct {
	Net, IPC, UTS, PID string
	// User, if not nil, is a namespace that owns the others.
	User                               *UserNamespace
	HostNet, HostIPC, HostUTS, HostPID bool
}

// A UserNamespace is one that exists, with the IDs that it has.
type UserNamespace struct {
	Path       string
	UIDs, GIDs []specs.LinuxIDMapping
}

// Files are files of the sandbox that show up in every container, unless the
// kubelet mounts something else at their place. An empty path is not mounted.
type Files struct {
	Hostname   string // /etc/hostname
	Hosts      string // /etc/hosts
	ResolvConf string // /etc/resolv.conf
	Shm        string // /dev/shm, a directory
}

// Result is the configuration with what the status of the container reports.
type Result struct {
	Spec *specs.Spec
	// OOMClamped is set when the wanted oom_score_adj was below the floor.
	OOMClamped bool
}

// ErrNoCommand is returned when neither the pod nor the image says what to run.
var ErrNoCommand = errors.New("no command specified")

// Spec makes the configuration. Errors name what cannot be done, in the words
// of the CRI's fields.
func Spec(in Input) (Result, error) {
	var res Result
	sc := in.Config.GetLinux().GetSecurityContext()
	args, err := command(in.Config, in.Image)
	if err != nil {
		return res, err
	}
	user, err := resolveUser(in.Rootfs, in.Image.User, sc)
	if err != nil {
		return res, err
	}
	caps, err := capabilities(sc, in.Host.Capabilities)
	if err != nil {
		return res, err
	}
	mounts, err := in.mounts()
	if err != nil {
		return res, err
	}
	seccomp, err := seccompProfile(sc, in.Host, caps.Bounding)
	if err != nil {
		return res, err
	}
	devices, rules, err := devices(in.Config)
	if err != nil {
		return res, err
	}
	resources := linuxResources(in.Config.GetLinux().GetResources(), in.Host)
	resources.Devices = rules
	oom := int(in.Config.GetLinux().GetResources().GetOomScoreAdj())
	if oom < in.Host.OOMScoreFloor {
		oom, res.OOMClamped = in.Host.OOMScoreFloor, true
	}
	s := &specs.Spec{
		Version: "1.0.2",
		Process: &specs.Process{
			Terminal:        in.Config.GetTty(),
			User:            user,
			Args:            args,
			Env:             environment(in, user),
			Cwd:             workingDir(in.Config, in.Image),
			Capabilities:    caps,
			NoNewPrivileges: sc.GetNoNewPrivs(),
			OOMScoreAdj:     &oom,
			ApparmorProfile: apparmor(sc, in.Host),
		},
		Root:        &specs.Root{Path: in.Rootfs, Readonly: sc.GetReadonlyRootfs()},
		Mounts:      mounts,
		Annotations: annotations(in),
		Linux: &specs.Linux{
			CgroupsPath:       in.CgroupsPath,
			Resources:         resources,
			Namespaces:        in.Namespaces.spec(),
			Devices:           devices,
			Seccomp:           seccomp,
			RootfsPropagation: rootPropagation(mounts),
			MaskedPaths:       sc.GetMaskedPaths(),
			ReadonlyPaths:     sc.GetReadonlyPaths(),
		},
	}
	if in.Host.CgroupV2 && !sc.GetPrivileged() {
		s.Linux.Namespaces = append(s.Linux.Namespaces, specs.LinuxNamespace{Type: specs.CgroupNamespace})
	}
	if u := in.Namespaces.User; u != nil {
		s.Linux.UIDMappings, s.Linux.GIDMappings = u.UIDs, u.GIDs
	}
	if label := selinux(sc); label != "" {
		s.Process.SelinuxLabel = label
	}
	if sc.GetPrivileged() {
		s.Linux.MaskedPaths, s.Linux.ReadonlyPaths = nil, nil
	} else if sc == nil {
		s.Linux.MaskedPaths, s.Linux.ReadonlyPaths = defaultMasked, defaultReadonly
	}
	res.Spec = s
	return res, nil
}

// annotations are those that other tools (runtime hooks, sandboxes with virtual
// machines) know from containerd.
func annotations(in Input) map[string]string {
	a := maps.Clone(in.Config.GetAnnotations())
	if a == nil {
		a = map[string]string{}
	}
	meta := in.Sandbox.GetMetadata()
	a["io.kubernetes.cri.container-type"] = "container"
	a["io.kubernetes.cri.container-name"] = in.Config.GetMetadata().GetName()
	a["io.kubernetes.cri.sandbox-name"] = meta.GetName()
	a["io.kubernetes.cri.sandbox-namespace"] = meta.GetNamespace()
	a["io.kubernetes.cri.sandbox-uid"] = meta.GetUid()
	return a
}

func (n Namespaces) spec() []specs.LinuxNamespace {
	list := []specs.LinuxNamespace{{Type: specs.MountNamespace}}
	add := func(t specs.LinuxNamespaceType, path string, host bool) {
		if !host {
			list = append(list, specs.LinuxNamespace{Type: t, Path: path})
		}
	}
	if n.User != nil {
		add(specs.UserNamespace, n.User.Path, false)
	}
	add(specs.PIDNamespace, n.PID, n.HostPID)
	add(specs.NetworkNamespace, n.Net, n.HostNet)
	add(specs.IPCNamespace, n.IPC, n.HostIPC)
	add(specs.UTSNamespace, n.UTS, n.HostUTS)
	return list
}

func apparmor(sc *runtimeapi.LinuxContainerSecurityContext, h Host) string {
	if !h.AppArmor || sc.GetPrivileged() {
		return ""
	}
	if p := sc.GetApparmor(); p.GetProfileType() == runtimeapi.SecurityProfile_Localhost {
		return p.GetLocalhostRef()
	}
	return "" // no profile of our own is loaded: what the kernel gives by default
}

func selinux(sc *runtimeapi.LinuxContainerSecurityContext) string {
	o := sc.GetSelinuxOptions()
	if o.GetType() == "" || sc.GetPrivileged() {
		return ""
	}
	return fmt.Sprintf("%s:%s:%s:%s", o.GetUser(), o.GetRole(), o.GetType(), o.GetLevel())
}

// What a container must not see or write in /proc and /sys when the kubelet
// says nothing; the kubelet's own lists are the same.
var (
	defaultMasked = []string{
		"/proc/asound", "/proc/acpi", "/proc/interrupts", "/proc/kcore", "/proc/keys", "/proc/latency_stats",
		"/proc/timer_list", "/proc/timer_stats", "/proc/sched_debug", "/proc/scsi", "/sys/firmware",
		"/sys/devices/virtual/powercap",
	}
	defaultReadonly = []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}
)
