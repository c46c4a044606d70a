package containers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"

	imagespec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/periplus/periplus/cni"
	"github.com/periplus/periplus/containers/cdi"
	"github.com/periplus/periplus/containers/snapshot"
)

// ErrNoOCIRuntime is returned when neither crun nor runc is installed.
var ErrNoOCIRuntime = errors.New("no OCI runtime found: install crun or runc (apt-get install crun)")

// Config is what a Runtime needs. Fields without a default must be set.
type Config struct {
	StateDir string // records, root file systems; survives a reboot
	RunDir   string // sockets and pinned namespaces; on a tmpfs, usually

	Images    ImageStore
	Snapshots Snapshots
	Network   cni.Network

	// OCIRuntime is a path or a name in PATH. Default: crun, else runc.
	OCIRuntime string
	// MonitorPath is the monitor program. Default: the embedded one, extracted
	// to StateDir/bin.
	MonitorPath string
	// StreamAddress is where exec, attach and port-forward are served: a
	// loopback address. Default: 127.0.0.1:0, any port.
	StreamAddress string
	// CgroupParent holds containers whose pod names no parent. Default: /periplus.
	CgroupParent string
	// SeccompDir is where Localhost seccomp profiles with relative names are.
	// Default: /var/lib/kubelet/seccomp.
	SeccompDir string
	// CDIDirs are where device vendors describe their devices. Default: cdi.Dirs.
	CDIDirs []string
	// Version is reported as the runtime's version. Default: "dev".
	Version string
	Log     *slog.Logger // default: slog.Default()
}

// An ImageStore knows the images that are present.
type ImageStore interface {
	// Image finds one by name, digest reference or ID. The error wraps
	// ErrNoImage when it is not there.
	Image(ctx context.Context, ref string) (Image, error)
}

// ErrNoImage is returned by an ImageStore for an image that is not present.
var ErrNoImage = errors.New("image is not present")

// An Image is what a container needs to know of one.
type Image struct {
	ID      string // "sha256:<hex>", digest of the configuration
	Name    string // a tag, "docker.io/library/nginx:1.29", if it has one
	Ref     string // "docker.io/library/nginx@sha256:<hex>", if it was pulled by one
	ChainID string // its top layer
	Config  imagespec.ImageConfig
}

// Snapshots makes root file systems; snapshot.Snapshotter has these methods.
type Snapshots interface {
	Prepare(ctx context.Context, id, chainID string, o snapshot.PrepareOptions) error
	Mount(ctx context.Context, id, target string) error
	Unmount(ctx context.Context, target string) error
	Remove(ctx context.Context, id string) error
	Usage(ctx context.Context, id string) (snapshot.Usage, error)
	Prepared() []string
	Root() string
}

var _ Snapshots = snapshot.Snapshotter(nil)

func (c *Config) complete() error {
	for _, f := range []struct {
		name string
		dir  *string
	}{{"StateDir", &c.StateDir}, {"RunDir", &c.RunDir}} {
		if !filepath.IsAbs(*f.dir) {
			return fmt.Errorf("containers: %s is %q, want an absolute path", f.name, *f.dir)
		}
		*f.dir = filepath.Clean(*f.dir)
	}
	// The kernel's limit for socket paths is 107 bytes; the longest name below RunDir has 20.
	if len(c.RunDir) > 87 {
		return fmt.Errorf("containers: RunDir %q is longer than 87 bytes, too long for sockets in it", c.RunDir)
	}
	switch {
	case c.Images == nil:
		return errors.New("containers: Images is not set")
	case c.Snapshots == nil:
		return errors.New("containers: Snapshots is not set")
	case c.Network == nil:
		return errors.New("containers: Network is not set")
	}
	setDefault(&c.StreamAddress, "127.0.0.1:0")
	setDefault(&c.CgroupParent, "/periplus")
	setDefault(&c.SeccompDir, "/var/lib/kubelet/seccomp")
	setDefault(&c.Version, "dev")
	if len(c.CDIDirs) == 0 {
		c.CDIDirs = cdi.Dirs
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if os.Geteuid() != 0 {
		return errors.New("containers: running containers needs root")
	}
	return nil
}

func setDefault(s *string, v string) {
	if *s == "" {
		*s = v
	}
}

// CheckOCIRuntime reports why there is no such OCI runtime on this machine, if so.
func CheckOCIRuntime(want string) error {
	_, err := findOCIRuntime(want)
	return err
}

// findOCIRuntime returns the path of the wanted runtime, or of the best there is.
func findOCIRuntime(want string) (string, error) {
	if want != "" {
		path, err := exec.LookPath(want)
		if err != nil {
			return "", fmt.Errorf("OCI runtime %q cannot be run: %w: name an installed one, such as crun or runc, or none to use the first that is found", want, err)
		}
		return path, nil
	}
	for _, name := range []string{"crun", "runc"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", ErrNoOCIRuntime
}
