package containers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/periplus/periplus/containers/monitor"
	"github.com/periplus/periplus/containers/monitor/bin"
	"github.com/periplus/periplus/containers/oci"
	"github.com/periplus/periplus/containers/stream"
	"github.com/periplus/periplus/cri"
	"github.com/periplus/periplus/linux/cgroup"
	"github.com/periplus/periplus/linux/process"
)

// A Runtime implements cri.Runtime. Its calls wait until Run has found out what
// became of the containers of an earlier process.
type Runtime struct {
	cfg    Config
	log    *slog.Logger
	oci    monitor.OCI
	ociErr error // why there is no OCI runtime; reported by Status and by every start
	host   oci.Host
	client monitor.Client
	stream *stream.Server
	events broadcaster

	monitor gate // open while the monitor answers

	monitorPath string
	warnOOM     sync.Once
	closing     atomic.Bool    // the monitor is being ended on purpose
	background  sync.WaitGroup // goroutines that finish containers
	ready       chan struct{}  // closed once, when the monitor has told everything
	readyOnce   sync.Once

	mu         sync.Mutex // guards the maps
	sandboxes  map[string]*podSandbox
	containers map[string]*container
	names      map[string]string // what may exist only once → ID of who has it

	usage usageHistory
}

var _ cri.Runtime = (*Runtime)(nil)

// New reads the records of an earlier process and opens the streaming server.
// Nothing runs yet: see Run.
func New(cfg Config) (*Runtime, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	r := &Runtime{
		cfg:        cfg,
		log:        cfg.Log,
		client:     monitor.Client{Socket: filepath.Join(cfg.RunDir, monitor.SocketName)},
		ready:      make(chan struct{}),
		sandboxes:  map[string]*podSandbox{},
		containers: map[string]*container{},
		names:      map[string]string{},
	}
	var path string
	if path, r.ociErr = findOCIRuntime(cfg.OCIRuntime); r.ociErr != nil && !errors.Is(r.ociErr, ErrNoOCIRuntime) {
		return nil, r.ociErr
	}
	r.oci = monitor.OCI{Path: path, Root: filepath.Join(cfg.RunDir, "oci")}
	r.host = detectHost(cfg.SeccompDir)
	for _, dir := range []string{r.sandboxDir(""), r.containerDir(""), cfg.RunDir, r.oci.Root} {
		if err := os.MkdirAll(dir, 0o711); err != nil {
			return nil, err
		}
	}
	// A process that was killed could not remove what it had passed to commands.
	left, err := filepath.Glob(filepath.Join(cfg.RunDir, processFiles))
	for _, path := range left {
		err = errors.Join(err, os.Remove(path))
	}
	if err != nil {
		return nil, err
	}
	if r.monitorPath = cfg.MonitorPath; r.monitorPath == "" {
		if r.monitorPath, err = bin.Extract(filepath.Join(cfg.StateDir, "bin")); err != nil {
			return nil, err
		}
	}
	if err := r.load(); err != nil {
		return nil, err
	}
	if r.stream, err = stream.Listen(cfg.StreamAddress, streamer{r}); err != nil {
		return nil, err
	}
	return r, nil
}

func detectHost(seccompDir string) oci.Host {
	_, seccompErr := os.Stat("/proc/sys/kernel/seccomp/actions_avail")
	apparmor, _ := os.ReadFile("/sys/module/apparmor/parameters/enabled")
	return oci.Host{
		Capabilities:  process.Capabilities(),
		OOMScoreFloor: process.OOMScoreFloor(),
		Swap:          cgroup.HasSwap(),
		Hugetlb:       cgroup.Has("hugetlb"),
		Seccomp:       seccompErr == nil,
		AppArmor:      len(apparmor) > 0 && apparmor[0] == 'Y',
		CgroupV2:      cgroup.Detect() == cgroup.V2,
		SeccompDir:    seccompDir,
	}
}

// Run starts the monitor or finds the running one, serves until ctx ends, and
// leaves the monitor and all containers as they are.
func (r *Runtime) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return r.supervise(ctx) })
	group.Go(func() error { return r.stream.Run(ctx) })
	err := group.Wait()
	r.background.Wait()
	return err
}

// Ready is closed when calls are served.
func (r *Runtime) Ready() <-chan struct{} { return r.ready }

// Close ends what New opened, if Run has not been called. Containers go on.
func (r *Runtime) Close() error { return r.stream.Close() }

// Shutdown, called while Run is at work, with everything set stops and removes
// all containers and sandboxes and ends the monitor; otherwise it does nothing,
// for the containers are to go on.
func (r *Runtime) Shutdown(ctx context.Context, everything bool) error {
	if !everything {
		return nil
	}
	if err := r.wait(ctx); err != nil {
		return err
	}
	group, gctx := errgroup.WithContext(ctx)
	for _, s := range r.allSandboxes() {
		group.Go(func() error { return r.removeSandbox(gctx, s, shutdownGrace) })
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("shut down containers: %w", err)
	}
	r.closing.Store(true)
	if err := r.client.Quit(ctx); err != nil {
		return fmt.Errorf("end the container monitor: %w", err)
	}
	_ = cgroup.Remove(r.cfg.CgroupParent)
	for _, name := range []string{"netns", "ipcns", "utsns", "userns", "oci", monitor.SocketName, "monitor.lock"} {
		_ = os.RemoveAll(filepath.Join(r.cfg.RunDir, name))
	}
	return nil
}

// shutdownGrace is how long containers have to end by themselves when everything stops.
const shutdownGrace = 10 * time.Second

// wait blocks a call until the state is known.
func (r *Runtime) wait(ctx context.Context) error {
	select {
	case <-r.ready:
		return nil
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	}
}

func (r *Runtime) sandboxDir(id string) string { return filepath.Join(r.cfg.StateDir, "sandboxes", id) }
func (r *Runtime) containerDir(id string) string {
	return filepath.Join(r.cfg.StateDir, "containers", id)
}

// reserve makes a name belong to id. A name is taken until release.
func (r *Runtime) reserve(name, id string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if holder, taken := r.names[name]; taken {
		return status.Errorf(codes.AlreadyExists, "name %q is reserved for %q", name, holder)
	}
	r.names[name] = id
	return nil
}

func (r *Runtime) release(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.names, name)
}

func (r *Runtime) sandbox(id string) (*podSandbox, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	full, err := find(r.sandboxes, id)
	if err != nil {
		return nil, status.Errorf(codes.NotFound, "an error occurred when try to find sandbox %q: not found", id)
	}
	return full, nil
}

func (r *Runtime) container(id string) (*container, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c, err := find(r.containers, id)
	if err != nil || c.rec.Pause {
		return nil, status.Errorf(codes.NotFound, "an error occurred when try to find container %q: not found", id)
	}
	return c, nil
}

var errNotFound = errors.New("not found")

// find takes an ID or a prefix of only one.
func find[T any](m map[string]*T, id string) (*T, error) {
	if v, ok := m[id]; ok {
		return v, nil
	}
	var found *T
	if len(id) >= 4 {
		for k, v := range m {
			if len(k) > len(id) && k[:len(id)] == id {
				if found != nil {
					return nil, errNotFound
				}
				found = v
			}
		}
	}
	if found == nil {
		return nil, errNotFound
	}
	return found, nil
}

func (r *Runtime) allSandboxes() []*podSandbox {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := make([]*podSandbox, 0, len(r.sandboxes))
	for _, s := range r.sandboxes {
		list = append(list, s)
	}
	return list
}

// allContainers includes pause containers.
func (r *Runtime) allContainers() []*container {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := make([]*container, 0, len(r.containers))
	for _, c := range r.containers {
		list = append(list, c)
	}
	return list
}

// containersOf returns a sandbox's containers without its pause container.
func (r *Runtime) containersOf(sandboxID string) []*container {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []*container
	for _, c := range r.containers {
		if c.rec.SandboxID == sandboxID && !c.rec.Pause {
			list = append(list, c)
		}
	}
	return list
}
