package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sync/errgroup"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/periplus/periplus/cni"
	"github.com/periplus/periplus/linux/namespace"
)

// shmSize is the size of a pod's /dev/shm, as in Docker.
const shmSize = 64 << 20

// IfName is the name of a pod's interface.
const IfName = "eth0"

// A Sandbox is what Make made. It is stored with the pod's record.
type Sandbox struct {
	Dir  string         `json:"dir"` // its files
	Pins namespace.Pins `json:"pins"`

	Hostname   string `json:"hostname"`   // file for /etc/hostname
	Hosts      string `json:"hosts"`      // file for /etc/hosts
	ResolvConf string `json:"resolvConf"` // file for /etc/resolv.conf
	Shm        string `json:"shm"`        // directory for /dev/shm

	HostNetwork bool `json:"hostNetwork,omitempty"`
	HostIPC     bool `json:"hostIPC,omitempty"`
	// User is nil for a pod whose users are the machine's. Its Holder is set before Make.
	User      *namespace.User `json:"user,omitempty"`
	Addresses []netip.Addr    `json:"addresses,omitempty"`
	Attached  bool            `json:"attached,omitempty"` // the network has been asked for an attachment
}

// Plan says what Make is going to make, without touching anything: it is
// recorded first, so that a crash in between leaves nothing unknown.
func Plan(id, dir, pinDir string, config *runtimeapi.PodSandboxConfig) (*Sandbox, error) {
	ns := config.GetLinux().GetSecurityContext().GetNamespaceOptions()
	user, err := planUser(ns)
	if err != nil {
		return nil, err
	}
	s := &Sandbox{
		Dir:         dir,
		Hostname:    filepath.Join(dir, "hostname"),
		Hosts:       filepath.Join(dir, "hosts"),
		ResolvConf:  filepath.Join(dir, "resolv.conf"),
		Shm:         "/dev/shm",
		HostNetwork: ns.GetNetwork() == runtimeapi.NamespaceMode_NODE,
		HostIPC:     ns.GetIpc() == runtimeapi.NamespaceMode_NODE,
		User:        user,
	}
	if user != nil {
		s.Pins.User = filepath.Join(pinDir, "userns", id)
	}
	if !s.HostNetwork {
		s.Pins.Net = filepath.Join(pinDir, "netns", id)
		s.Pins.UTS = filepath.Join(pinDir, "utsns", id)
		s.Attached = true
	}
	if !s.HostIPC {
		s.Pins.IPC = filepath.Join(pinDir, "ipcns", id)
		s.Shm = filepath.Join(dir, "shm")
	}
	return s, nil
}

// Make makes the sandbox and attaches it to the network. On error the caller
// calls Destroy.
func (s *Sandbox) Make(ctx context.Context, network cni.Network, at cni.Attachment, config *runtimeapi.PodSandboxConfig) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		settings := namespace.Settings{Hostname: config.GetHostname(), Sysctls: config.GetLinux().GetSysctls(), User: s.User}
		if s.HostNetwork && s.HostIPC {
			settings.Sysctls = nil // they would be the host's; the API server refuses them
		}
		if err := namespace.Create(s.Pins, settings); err != nil {
			return err
		}
		if s.HostNetwork {
			return nil
		}
		res, err := network.Add(ctx, at)
		if err != nil {
			return fmt.Errorf("failed to setup network for sandbox %q: %w", at.SandboxID, err)
		}
		for _, p := range res.Addresses {
			s.Addresses = append(s.Addresses, p.Addr())
		}
		return nil
	})
	group.Go(func() error {
		if !s.HostIPC {
			uid, gid := s.root()
			if err := namespace.MountShm(s.Shm, shmSize, uid, gid); err != nil {
				return err
			}
		}
		return s.writeFiles(config)
	})
	return group.Wait()
}

// Attachment describes a sandbox to the network.
func (s *Sandbox) Attachment(id string, config *runtimeapi.PodSandboxConfig) cni.Attachment {
	meta := config.GetMetadata()
	at := cni.Attachment{
		SandboxID: id, NetNS: s.Pins.Net, IfName: IfName,
		PodNamespace: meta.GetNamespace(), PodName: meta.GetName(), PodUID: meta.GetUid(),
	}
	for text := range strings.SplitSeq(config.GetAnnotations()[cni.AnnotationWanted], ",") {
		if ip, err := netip.ParseAddr(text); err == nil {
			at.Wanted = append(at.Wanted, ip)
		}
	}
	for _, m := range config.GetPortMappings() {
		if m.GetHostPort() <= 0 {
			continue
		}
		ip, _ := netip.ParseAddr(m.GetHostIp())
		at.PortMappings = append(at.PortMappings, cni.PortMapping{
			Protocol: strings.ToLower(m.GetProtocol().String()), HostIP: ip,
			HostPort: uint16(m.GetHostPort()), ContainerPort: uint16(m.GetContainerPort()),
		})
	}
	return at
}

// Intact reports whether the sandbox can take containers: after a restart of
// the machine its namespaces are gone.
func (s *Sandbox) Intact() bool { return s.Pins.Intact() }

// Destroy detaches the sandbox from the network and lets go of its namespaces
// and mounts. Calling it again is no error; files stay until Remove.
func (s *Sandbox) Destroy(ctx context.Context, network cni.Network, at cni.Attachment) error {
	if s.Attached {
		if err := network.Del(ctx, at); err != nil {
			return fmt.Errorf("failed to destroy network for sandbox %q: %w", at.SandboxID, err)
		}
		s.Attached = false
	}
	err := s.Pins.Unpin()
	if !s.HostIPC {
		err = errors.Join(err, namespace.Detach(s.Shm))
	}
	return err
}

// Remove removes the files.
func (s *Sandbox) Remove() error { return os.RemoveAll(s.Dir) }
