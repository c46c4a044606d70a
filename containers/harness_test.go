package containers_test

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	imagespec "github.com/opencontainers/image-spec/specs-go/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/periplus/periplus/cni"
	"github.com/periplus/periplus/containers"
	"github.com/periplus/periplus/containers/snapshot"
	"github.com/periplus/periplus/cri"
)

// limit ends a test that waits for something that does not happen.
const limit = 60 * time.Second

var monitorProgram string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "monitor-")
	if err != nil {
		panic(err)
	}
	monitorProgram = filepath.Join(dir, "monitor")
	if os.Geteuid() == 0 {
		build := exec.Command("go", "build", "-o", monitorProgram, "../cmd/helper/monitor")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build the monitor: %v\n%s", err, out)
			os.Exit(1)
		}
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// node is a runtime under test with its directories. It can be stopped and
// started like peri.
type node struct {
	t      testing.TB
	cfg    containers.Config
	cgroup string

	*containers.Runtime
	stop func()
	logs chan string // what the runtime logs
}

// Write takes one record of the runtime's log.
func (n *node) Write(p []byte) (int, error) {
	select {
	case n.logs <- string(p):
	default:
	}
	return n.t.Output().Write(p)
}

// logged waits until the runtime logs a record with text in it.
func (n *node) logged(text string) {
	n.t.Helper()
	timeout := time.After(limit)
	for {
		select {
		case line := <-n.logs:
			if strings.Contains(line, text) {
				return
			}
		case <-timeout:
			n.t.Fatalf("%s is not logged", text)
		}
	}
}

func newNode(t testing.TB, change ...func(*node, string)) *node {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: namespaces, mounts and cgroups")
	}
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		t.Skip("needs busybox (busybox-static)")
	}
	if _, err := exec.LookPath("crun"); err != nil {
		if _, err := exec.LookPath("runc"); err != nil {
			t.Skip("needs crun or runc")
		}
	}
	// Not t.TempDir: socket paths must be short.
	dir, err := os.MkdirTemp("", "peri-") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	var b [4]byte
	_, _ = rand.Read(b[:])
	n := &node{t: t, logs: make(chan string, 1000), cgroup: "/periplus-test-" + hex.EncodeToString(b[:])}
	n.cfg = containers.Config{
		StateDir: filepath.Join(dir, "state"), RunDir: filepath.Join(dir, "run"), MonitorPath: monitorProgram,
		Images: images{}, Snapshots: &rootfs{root: filepath.Join(dir, "fs"), busybox: busybox}, Network: &network{},
		CgroupParent: n.cgroup, Log: slog.New(slog.NewTextHandler(n, nil)),
	}
	for _, f := range change {
		f(n, dir)
	}
	n.start()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		// Without the time that Shutdown leaves to containers.
		pods, err := n.ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{})
		if err != nil {
			t.Errorf("list: %v", err)
		}
		for _, p := range pods.GetItems() {
			if _, err := n.RemovePodSandbox(ctx, &runtimeapi.RemovePodSandboxRequest{PodSandboxId: p.Id}); err != nil {
				t.Errorf("remove sandbox: %v", err)
			}
		}
		if err := n.Shutdown(ctx, true); err != nil {
			t.Errorf("shutdown: %v", err)
		}
		n.stop()
		mounts, _ := os.ReadFile("/proc/self/mounts")
		if strings.Contains(string(mounts), dir) {
			t.Errorf("mounts are left below %s", dir)
		}
		if left, _ := filepath.Glob("/sys/fs/cgroup/*" + n.cgroup); len(left) > 0 {
			t.Errorf("cgroups are left: %v", left)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return n
}

func (n *node) start() {
	n.t.Helper()
	r, err := containers.New(n.cfg)
	if err != nil {
		n.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	n.Runtime = r
	n.stop = func() {
		cancel()
		if err := <-done; err != nil {
			n.t.Errorf("run: %v", err)
		}
	}
	select {
	case <-r.Ready():
	case <-time.After(limit):
		n.t.Fatal("runtime does not get ready")
	}
	n.logged(`"connected to the container monitor"`)
}

func (n *node) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	n.t.Cleanup(cancel)
	return ctx
}

func podConfig(n *node, name string, change ...func(*runtimeapi.PodSandboxConfig)) *runtimeapi.PodSandboxConfig {
	c := &runtimeapi.PodSandboxConfig{
		Metadata:     &runtimeapi.PodSandboxMetadata{Name: name, Namespace: "default", Uid: "uid-" + name},
		Hostname:     name,
		LogDirectory: filepath.Join(n.cfg.StateDir, "logs", name),
		DnsConfig:    &runtimeapi.DNSConfig{Servers: []string{"10.43.0.10"}, Searches: []string{"svc.cluster.local"}},
		Labels:       map[string]string{"app": name},
		Linux: &runtimeapi.LinuxPodSandboxConfig{
			CgroupParent: n.cgroup,
			SecurityContext: &runtimeapi.LinuxSandboxSecurityContext{NamespaceOptions: &runtimeapi.NamespaceOption{
				Pid: runtimeapi.NamespaceMode_CONTAINER,
			}},
		},
	}
	for _, f := range change {
		f(c)
	}
	return c
}

func containerConfig(name string, cmd []string, change ...func(*runtimeapi.ContainerConfig)) *runtimeapi.ContainerConfig {
	c := &runtimeapi.ContainerConfig{
		Metadata: &runtimeapi.ContainerMetadata{Name: name},
		Image:    &runtimeapi.ImageSpec{Image: "busybox"},
		Command:  cmd,
		LogPath:  name + "/0.log",
		Linux: &runtimeapi.LinuxContainerConfig{
			Resources: &runtimeapi.LinuxContainerResources{OomScoreAdj: 1000},
			SecurityContext: &runtimeapi.LinuxContainerSecurityContext{
				NamespaceOptions: &runtimeapi.NamespaceOption{Pid: runtimeapi.NamespaceMode_CONTAINER},
			},
		},
	}
	for _, f := range change {
		f(c)
	}
	return c
}

func sh(script string) []string { return []string{"/bin/sh", "-c", script} }

func (n *node) pod(config *runtimeapi.PodSandboxConfig) string {
	n.t.Helper()
	resp, err := n.RunPodSandbox(n.ctx(), &runtimeapi.RunPodSandboxRequest{Config: config})
	if err != nil {
		n.t.Fatalf("run pod sandbox: %v", err)
	}
	return resp.PodSandboxId
}

func (n *node) create(pod string, config *runtimeapi.ContainerConfig) string {
	n.t.Helper()
	resp, err := n.CreateContainer(n.ctx(), &runtimeapi.CreateContainerRequest{PodSandboxId: pod, Config: config})
	if err != nil {
		n.t.Fatalf("create container: %v", err)
	}
	return resp.ContainerId
}

func (n *node) run(pod string, config *runtimeapi.ContainerConfig) string {
	n.t.Helper()
	id := n.create(pod, config)
	if _, err := n.StartContainer(n.ctx(), &runtimeapi.StartContainerRequest{ContainerId: id}); err != nil {
		n.t.Fatalf("start container: %v", err)
	}
	return id
}

func (n *node) status(id string) *runtimeapi.ContainerStatus {
	n.t.Helper()
	resp, err := n.ContainerStatus(n.ctx(), &runtimeapi.ContainerStatusRequest{ContainerId: id})
	if err != nil {
		n.t.Fatalf("container status: %v", err)
	}
	return resp.Status
}

// ended waits for a container's end and returns its status.
func (n *node) ended(id string) *runtimeapi.ContainerStatus {
	n.t.Helper()
	return waitEnded(n.t, n.Runtime, id)
}

func waitEnded(t testing.TB, r cri.Runtime, id string) *runtimeapi.ContainerStatus {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	var last *runtimeapi.ContainerStatus
	check := func() {
		resp, err := r.ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: id})
		if err != nil {
			t.Errorf("container status: %v", err)
			cancel()
			return
		}
		if last = resp.Status; last.State == runtimeapi.ContainerState_CONTAINER_EXITED {
			cancel()
		}
	}
	err := r.Events(ctx, check, func(e *runtimeapi.ContainerEventResponse) {
		if e.ContainerId == id {
			check()
		}
	})
	if err != nil {
		t.Fatalf("events: %v", err)
	}
	if last == nil || last.State != runtimeapi.ContainerState_CONTAINER_EXITED {
		t.Fatalf("container %s does not end: %v", id, last)
	}
	return last
}

func (n *node) exec(id, script string) (string, int32) {
	n.t.Helper()
	resp, err := n.ExecSync(n.ctx(), &runtimeapi.ExecSyncRequest{ContainerId: id, Cmd: sh(script)})
	if err != nil {
		n.t.Fatalf("exec %q: %v", script, err)
	}
	return string(resp.Stdout) + string(resp.Stderr), resp.ExitCode
}

// images knows one image, busybox.
type images struct{ chain string }

func (i images) Image(_ context.Context, ref string) (containers.Image, error) {
	if ref != "busybox" {
		return containers.Image{}, fmt.Errorf("%s: %w", ref, containers.ErrNoImage)
	}
	return containers.Image{
		ID: "sha256:" + strings.Repeat("b", 64), Name: "docker.io/library/busybox:latest", ChainID: i.chain,
		Config: imagespec.ImageConfig{Env: []string{"PATH=/bin", "FROM_IMAGE=1"}, Cmd: []string{"/bin/sh"}, WorkingDir: "/tmp"},
	}, nil
}

// rootfs gives every container a directory with busybox in it.
type rootfs struct{ root, busybox string }

func (s *rootfs) Root() string { return s.root }

func (s *rootfs) Prepare(_ context.Context, id, _ string, _ snapshot.PrepareOptions) error {
	dir := filepath.Join(s.root, id)
	for _, d := range []string{"bin", "etc", "tmp", "root"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			return err
		}
	}
	in, err := os.Open(s.busybox)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(filepath.Join(dir, "bin/busybox"), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o755)
	if err != nil {
		return err
	}
	defer out.Close()
	if _, err := io.Copy(out, in); err != nil {
		return err
	}
	for _, name := range []string{"sh", "cat", "sleep", "echo", "id", "env", "hostname", "nc", "ps", "head", "tail", "dd", "kill", "pwd", "stty", "ls", "mount", "grep", "true", "yes"} {
		if err := os.Symlink("busybox", filepath.Join(dir, "bin", name)); err != nil && !os.IsExist(err) {
			return err
		}
	}
	passwd := "root:x:0:0:root:/root:/bin/sh\napp:x:1000:1001:App:/home/app:/bin/sh\n"
	return errorsJoin(
		os.WriteFile(filepath.Join(dir, "etc/passwd"), []byte(passwd), 0o644),
		os.WriteFile(filepath.Join(dir, "etc/group"), []byte("root:x:0:\nstaff:x:50:app\n"), 0o644))
}

func errorsJoin(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *rootfs) Mount(_ context.Context, id, target string) error {
	return syscall.Mount(filepath.Join(s.root, id), target, "", syscall.MS_BIND, "")
}

func (s *rootfs) Unmount(_ context.Context, target string) error {
	if err := syscall.Unmount(target, syscall.MNT_DETACH); err != nil && err != syscall.EINVAL && err != syscall.ENOENT {
		return err
	}
	return nil
}

func (s *rootfs) Remove(_ context.Context, id string) error {
	return os.RemoveAll(filepath.Join(s.root, id))
}
func (s *rootfs) Usage(context.Context, string) (snapshot.Usage, error) {
	return snapshot.Usage{Bytes: 4096, Inodes: 1}, nil
}
func (s *rootfs) Prepared() []string {
	entries, _ := os.ReadDir(s.root)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// network hands out addresses and remembers who has one.
type network struct {
	mu   sync.Mutex
	next byte
	has  map[string]netip.Addr
}

func (*network) Name() string                                    { return "test" }
func (*network) Configure(context.Context, []netip.Prefix) error { return nil }
func (*network) Status(context.Context) error                    { return nil }
func (*network) Check(context.Context, cni.Attachment) error     { return nil }
func (*network) Collect(context.Context, map[string]bool) error  { return nil }
func (w *network) Add(_ context.Context, a cni.Attachment) (cni.Result, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.has == nil {
		w.has = map[string]netip.Addr{}
	}
	w.next++
	addr := netip.AddrFrom4([4]byte{10, 42, 0, w.next})
	w.has[a.SandboxID] = addr
	return cni.Result{Addresses: []netip.Prefix{netip.PrefixFrom(addr, 24)}, HostIf: "veth"}, nil
}
func (w *network) Del(_ context.Context, a cni.Attachment) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.has, a.SandboxID)
	return nil
}

// serve offers the node on a socket and returns a client of it.
func (n *node) serve() cri.Runtime {
	n.t.Helper()
	path := filepath.Join(n.cfg.RunDir, "cri.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		n.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- cri.Serve(ctx, l, n.Runtime, nil) }()
	client, _, closer, err := cri.Dial(n.ctx(), "unix://"+path)
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() {
		closer.Close()
		cancel()
		if err := <-done; err != nil {
			n.t.Errorf("serve: %v", err)
		}
	})
	return client
}

func dialRead(t testing.TB, port uint16) string {
	t.Helper()
	conn, err := net.Dial("tcp4", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(limit))
	_ = conn.(*net.TCPConn).CloseWrite()
	b, _ := io.ReadAll(conn)
	return string(b)
}
