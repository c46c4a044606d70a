package containers_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/periplus/periplus/containers/monitor"
	"github.com/periplus/periplus/containers/snapshot"
	"github.com/periplus/periplus/containers/snapshot/overlayfs"
)

// readLog returns a container's log as its streams had it.
func readLog(t *testing.T, path string) (stdout, stderr string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := map[string]*strings.Builder{"stdout": {}, "stderr": {}}
	for line := range strings.Lines(string(b)) {
		e, err := monitor.ParseLogEntry([]byte(line))
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		w := text[e.Stream]
		w.Write(e.Content)
		if !e.Partial {
			w.WriteByte('\n')
		}
	}
	return text["stdout"].String(), text["stderr"].String()
}

func TestLife(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	client := n.serve() // the same through gRPC
	pod := n.pod(podConfig(n, "web"))
	id := n.run(pod, containerConfig("app", sh(`echo out; echo err >&2; trap 'echo bye; exit 7' TERM; hostname; while :; do sleep 0.05; done`)))

	st, err := client.PodSandboxStatus(n.ctx(), &runtimeapi.PodSandboxStatusRequest{PodSandboxId: pod})
	if err != nil {
		t.Fatal(err)
	}
	if st.Status.State != runtimeapi.PodSandboxState_SANDBOX_READY || st.Status.Network.Ip != "10.42.0.1" || len(st.ContainersStatuses) != 1 {
		t.Errorf("sandbox status: %v", st)
	}
	cs := n.status(id)
	if cs.State != runtimeapi.ContainerState_CONTAINER_RUNNING || cs.StartedAt < cs.CreatedAt || cs.StopSignal != runtimeapi.Signal_SIGNAL_SIGTERM {
		t.Errorf("container status: %v", cs)
	}
	for script, want := range map[string]string{
		`hostname; cat /etc/hostname`:                  "web\nweb\n",
		`cat /etc/resolv.conf`:                         "search svc.cluster.local\nnameserver 10.43.0.10\n",
		`pwd; echo $FROM_IMAGE $HOSTNAME; id -u`:       "/tmp\n1 web\n0\n",
		`grep -c . /proc/net/dev; ls /sys/class/net`:   "3\nlo\n",
		`grep CapEff /proc/self/status`:                "CapEff:\t00000000a80425fb\n",
		`grep ' /dev/shm ' /proc/mounts | head -c 3`:   "shm",
		`cat /proc/1/oom_score_adj`:                    "1000\n",
		`echo x > /proc/sys/kernel/domainname 2>&-; :`: "",
	} {
		if got, code := n.exec(id, script); got != want || code != 0 {
			t.Errorf("exec %q: %q, code %d, want %q", script, got, code, want)
		}
	}
	if _, code := n.exec(id, "exit 3"); code != 3 {
		t.Errorf("exec code %d, want 3", code)
	}
	_, err = n.ExecSync(n.ctx(), &runtimeapi.ExecSyncRequest{ContainerId: id, Cmd: []string{"sleep", "1000"}, Timeout: 1})
	if status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("exec with timeout: %v, want DeadlineExceeded", err)
	}
	_, err = n.ExecSync(n.ctx(), &runtimeapi.ExecSyncRequest{ContainerId: id, Cmd: []string{"/nothing"}})
	if err == nil || !strings.Contains(err.Error(), "/nothing") {
		t.Errorf("exec of a missing program: %v", err)
	}

	// Log rotation: move away, reopen.
	log := cs.LogPath
	if err := os.Rename(log, log+".1"); err != nil {
		t.Fatal(err)
	}
	if _, err := client.ReopenContainerLog(n.ctx(), &runtimeapi.ReopenContainerLogRequest{ContainerId: id}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.StopContainer(n.ctx(), &runtimeapi.StopContainerRequest{ContainerId: id, Timeout: 30}); err != nil {
		t.Fatal(err)
	}
	cs = n.status(id)
	if cs.State != runtimeapi.ContainerState_CONTAINER_EXITED || cs.ExitCode != 7 || cs.Reason != "Error" || cs.FinishedAt < cs.StartedAt {
		t.Errorf("after stop: %v", cs)
	}
	if out, errs := readLog(t, log+".1"); out != "out\nweb\n" || errs != "err\n" {
		t.Errorf("log: %q, %q", out, errs)
	}
	if out, _ := readLog(t, log); out != "bye\n" {
		t.Errorf("log after rotation: %q", out)
	}
	if left, _ := filepath.Glob("/sys/fs/cgroup/*" + n.cgroup + "/" + id); len(left) > 0 {
		t.Errorf("an ended container still has cgroups: %v", left)
	}

	if _, err := client.RemovePodSandbox(n.ctx(), &runtimeapi.RemovePodSandboxRequest{PodSandboxId: pod}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.ContainerStatus(n.ctx(), &runtimeapi.ContainerStatusRequest{ContainerId: id}); status.Code(err) != codes.NotFound {
		t.Errorf("status of a removed container: %v, want NotFound", err)
	}
	list, err := client.ListPodSandbox(n.ctx(), &runtimeapi.ListPodSandboxRequest{})
	if err != nil || len(list.Items) != 0 {
		t.Errorf("sandboxes after removal: %v, %v", list, err)
	}
	if has := n.cfg.Network.(*network).has; len(has) != 0 {
		t.Errorf("addresses after removal: %v", has)
	}
}

func TestEnds(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	pod := n.pod(podConfig(n, "ends"))
	for name, c := range map[string]struct {
		cmd    []string
		limit  int64
		code   int32
		reason string
	}{
		"good":   {cmd: sh("exit 0"), code: 0, reason: "Completed"},
		"bad":    {cmd: sh("exit 42"), code: 42, reason: "Error"},
		"signal": {cmd: sh("kill -9 $$; exit 137"), code: 137, reason: "Error"},
		"oom":    {cmd: sh("x=$(yes); echo $x"), limit: 16 << 20, code: 137, reason: "OOMKilled"},
	} {
		id := n.run(pod, containerConfig(name, c.cmd, func(cc *runtimeapi.ContainerConfig) {
			cc.Linux.Resources.MemoryLimitInBytes = c.limit
		}))
		st := n.ended(id)
		if st.ExitCode != c.code || st.Reason != c.reason {
			t.Errorf("%s: code %d, reason %q, want %d, %q", name, st.ExitCode, st.Reason, c.code, c.reason)
		}
	}
	id := n.create(pod, containerConfig("missing", []string{"/no/such/program"}))
	_, err := n.StartContainer(n.ctx(), &runtimeapi.StartContainerRequest{ContainerId: id})
	if err == nil || !strings.Contains(err.Error(), "/no/such/program") {
		t.Errorf("start of a missing program: %v", err)
	}
	if st := n.status(id); st.Reason != "StartError" || st.ExitCode != 128 || st.State != runtimeapi.ContainerState_CONTAINER_EXITED {
		t.Errorf("after a failed start: %v", st)
	}
	_, err = n.CreateContainer(n.ctx(), &runtimeapi.CreateContainerRequest{PodSandboxId: pod, Config: containerConfig("x", nil, func(c *runtimeapi.ContainerConfig) { c.Image.Image = "absent" })})
	if status.Code(err) != codes.NotFound {
		t.Errorf("create from a missing image: %v, want NotFound", err)
	}
}

// TestRestart ends the runtime with containers running, and takes them over
// again: one that ended meanwhile has its true exit code.
func TestRestart(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	pod := n.pod(podConfig(n, "restart"))
	stays := n.run(pod, containerConfig("stays", sh(`trap 'exit 5' TERM; while :; do sleep 0.05; done`)))
	gone := n.run(pod, containerConfig("gone", sh(`while [ ! -e /tmp/go ]; do sleep 0.01; done; echo done; exit 9`)))
	created := n.create(pod, containerConfig("created", sh(`exit 0`)))
	before := n.status(stays)
	n.stop()
	if err := os.WriteFile(filepath.Join(n.cfg.StateDir, "containers", gone, "rootfs/tmp/go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	n.start()
	if after := n.status(stays); after.State != runtimeapi.ContainerState_CONTAINER_RUNNING || after.StartedAt != before.StartedAt {
		t.Errorf("after a restart: %v, before: %v", after, before)
	}
	if st := n.ended(gone); st.ExitCode != 9 {
		t.Errorf("exit code of a container that ended meanwhile: %v", st)
	}
	if out, _ := readLog(t, n.status(gone).LogPath); out != "done\n" {
		t.Errorf("its log: %q", out)
	}
	if out, code := n.exec(stays, "echo hi"); out != "hi\n" || code != 0 {
		t.Errorf("exec after a restart: %q, %d", out, code)
	}
	if _, err := n.StartContainer(n.ctx(), &runtimeapi.StartContainerRequest{ContainerId: created}); err != nil {
		t.Errorf("start of what was created before: %v", err)
	}
	if st := n.ended(created); st.ExitCode != 0 {
		t.Errorf("it ended with %v", st)
	}
	if _, err := n.StopContainer(n.ctx(), &runtimeapi.StopContainerRequest{ContainerId: stays, Timeout: 30}); err != nil {
		t.Fatal(err)
	}
	if st := n.status(stays); st.ExitCode != 5 {
		t.Errorf("after stop: %v", st)
	}
}

// TestMonitorDies kills the monitor: containers go on, what they write is
// logged, and they can be stopped.
func TestMonitorDies(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	pod := n.pod(podConfig(n, "orphan"))
	id := n.run(pod, containerConfig("app", sh(`trap 'echo bye; exit 6' TERM; echo started; while :; do sleep 0.05; done`)))
	client := monitor.Client{Socket: filepath.Join(n.cfg.RunDir, monitor.SocketName)}
	pid, _, err := client.Hello(n.ctx())
	if err != nil {
		t.Fatal(err)
	}
	p, err := os.FindProcess(pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	n.logged(`"connected to the container monitor"`) // once more
	if st := n.status(id); st.State != runtimeapi.ContainerState_CONTAINER_RUNNING {
		t.Fatalf("after the monitor's death: %v", st)
	}
	if out, _ := n.exec(id, "echo hi"); out != "hi\n" {
		t.Errorf("exec: %q", out)
	}
	if _, err := n.StopContainer(n.ctx(), &runtimeapi.StopContainerRequest{ContainerId: id, Timeout: 30}); err != nil {
		t.Fatal(err)
	}
	st := n.status(id)
	if st.ExitCode != 6 && st.Reason != "Unknown" { // kernels before 6.15 do not tell
		t.Errorf("after stop: %v", st)
	}
	if out, _ := readLog(t, st.LogPath); out != "started\nbye\n" {
		t.Errorf("log: %q", out)
	}
}

// TestMonitorReplaced makes the monitor another program, as an upgrade does: it
// stays the parent and sees every exit code.
func TestMonitorReplaced(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	pod := n.pod(podConfig(n, "upgrade"))
	id := n.run(pod, containerConfig("app", sh(`trap 'echo bye; exit 6' TERM; echo started; while :; do sleep 0.05; done`)))
	client := monitor.Client{Socket: filepath.Join(n.cfg.RunDir, monitor.SocketName)}
	before, _, err := client.Hello(n.ctx())
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Replace(n.ctx(), monitorProgram); err != nil {
		t.Fatal(err)
	}
	n.logged(`"connected to the container monitor"`)
	if after, _, err := client.Hello(n.ctx()); err != nil || after != before {
		t.Errorf("monitor %d became %d, %v", before, after, err)
	}
	if _, err := n.StopContainer(n.ctx(), &runtimeapi.StopContainerRequest{ContainerId: id, Timeout: 30}); err != nil {
		t.Fatal(err)
	}
	if st := n.status(id); st.ExitCode != 6 || st.Reason != "Error" {
		t.Errorf("after stop: %v", st)
	}
	if out, _ := readLog(t, n.status(id).LogPath); out != "started\nbye\n" {
		t.Errorf("log: %q", out)
	}
}

// onOverlay gives a node the real snapshotter, with one layer that has busybox in it.
func onOverlay(t *testing.T) func(*node, string) {
	return func(n *node, dir string) {
		s, err := overlayfs.Open(filepath.Join(dir, "overlay"), n.cfg.Log)
		if errors.Is(err, snapshot.ErrUnsupported) {
			t.Skip(err)
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		base := n.cfg.Snapshots.(*rootfs)
		err = s.Build(t.Context(), "sha256:"+strings.Repeat("c", 64), func(dir string) error {
			return (&rootfs{root: filepath.Dir(dir), busybox: base.busybox}).Prepare(t.Context(), filepath.Base(dir), "", snapshot.PrepareOptions{})
		})
		if err != nil {
			t.Fatal(err)
		}
		n.cfg.Snapshots, n.cfg.Images = s, images{chain: "sha256:" + strings.Repeat("c", 64)}
	}
}

// TestOverlay runs on the real snapshotter, through a restart of both.
func TestOverlay(t *testing.T) {
	t.Parallel()
	n := newNode(t, onOverlay(t))
	pod := n.pod(podConfig(n, "overlay"))
	id := n.run(pod, containerConfig("app", sh("echo x >/tmp/written; sleep 1000")))
	other := n.run(pod, containerConfig("other", sh("ls /tmp"), func(c *runtimeapi.ContainerConfig) {
		c.Mounts = []*runtimeapi.Mount{{ContainerPath: "/image", Readonly: true, Image: &runtimeapi.ImageSpec{Image: "busybox"}, ImageSubPath: "bin"}}
		c.Command = sh("ls /image/busybox; echo x >/image/y || echo refused")
	}))
	n.ended(other)
	if out, _ := readLog(t, n.status(other).LogPath); out != "/image/busybox\nrefused\n" {
		t.Errorf("image volume: %q", out)
	}
	n.stop()
	n.start()
	if out, _ := n.exec(id, "cat /tmp/written"); out != "x\n" {
		t.Errorf("after a restart: %q", out)
	}
}

// TestSharedPID is the only case with a pause process.
func TestSharedPID(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	shared := &runtimeapi.NamespaceOption{Pid: runtimeapi.NamespaceMode_POD}
	pod := n.pod(podConfig(n, "shared", func(c *runtimeapi.PodSandboxConfig) { c.Linux.SecurityContext.NamespaceOptions = shared }))
	with := func(c *runtimeapi.ContainerConfig) { c.Linux.SecurityContext.NamespaceOptions = shared }
	n.run(pod, containerConfig("a", []string{"sleep", "1234"}, with))
	b := n.run(pod, containerConfig("b", []string{"sleep", "4321"}, with))
	out, _ := n.exec(b, "ps")
	for _, want := range []string{"/pause pause", "sleep 1234", "sleep 4321"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not among the processes:\n%s", want, out)
		}
	}
	list, err := n.ListContainers(n.ctx(), &runtimeapi.ListContainersRequest{})
	if err != nil || len(list.Containers) != 2 {
		t.Errorf("containers: %v, %v", list, err)
	}
	// An ephemeral container in the PID namespace of another.
	target := n.run(pod, containerConfig("debug", sh("ps; exit 0"), func(c *runtimeapi.ContainerConfig) {
		c.Linux.SecurityContext.NamespaceOptions = &runtimeapi.NamespaceOption{Pid: runtimeapi.NamespaceMode_TARGET, TargetId: b}
	}))
	n.ended(target)
	if out, _ := readLog(t, n.status(target).LogPath); !strings.Contains(out, "sleep 4321") {
		t.Errorf("the target's processes are not seen:\n%s", out)
	}
}
