package containers_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/periplus/periplus/linux/namespace"
)

// TestUserNamespace runs a pod whose root is nobody on the machine: who it is, what it
// sees of its files and mounts, that it can write, and that its files are not root's.
func TestUserNamespace(t *testing.T) {
	t.Parallel()
	if err := namespace.UsersSupported(); err != nil {
		t.Skip(err)
	}
	n := newNode(t, onOverlay(t))
	// As peri makes its directory: the namespace's root has to get through.
	if err := os.Chmod(filepath.Dir(n.cfg.StateDir), 0o700); err != nil {
		t.Fatal(err)
	}
	ids := []*runtimeapi.IDMapping{{ContainerId: 0, HostId: 200_000, Length: 65536}}
	for _, pid := range []runtimeapi.NamespaceMode{runtimeapi.NamespaceMode_CONTAINER, runtimeapi.NamespaceMode_POD} {
		ns := &runtimeapi.NamespaceOption{Pid: pid, UsernsOptions: &runtimeapi.UserNamespace{Uids: ids, Gids: ids}}
		pod := n.pod(podConfig(n, "userns-"+strings.ToLower(pid.String()), func(c *runtimeapi.PodSandboxConfig) {
			c.Linux.SecurityContext.NamespaceOptions = ns
			c.Linux.Sysctls = map[string]string{"kernel.shm_rmid_forced": "1", "net.ipv4.ip_local_port_range": "2000 2100"}
		}))
		shared := t.TempDir()
		if err := os.Chmod(shared, 0o755); err != nil {
			t.Fatal(err)
		}
		script := `id -u; cat /proc/self/uid_map; ls -ln / | grep bin; ls -ln /shared | grep there; hostname
echo x >/tmp/f && echo y >/dev/shm/f && echo z >/shared/new && echo written; echo by-name >/dev/stdout
cat /proc/sys/kernel/shm_rmid_forced /proc/sys/net/ipv4/ip_local_port_range`
		if err := os.WriteFile(filepath.Join(shared, "there"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		id := n.run(pod, containerConfig("app", sh(script+"; sleep 1000"), func(c *runtimeapi.ContainerConfig) {
			c.Linux.SecurityContext.NamespaceOptions = ns
			c.Mounts = []*runtimeapi.Mount{{ContainerPath: "/shared", HostPath: shared, UidMappings: ids, GidMappings: ids}}
		}))
		n.exec(id, "until [ -s /shared/new ]; do :; done")
		if out, code := n.exec(id, "id -u; cat /tmp/f /dev/shm/f"); out != "0\nx\ny\n" || code != 0 {
			t.Errorf("%s: exec: %q, %d", pid, out, code)
		}
		if _, err := n.StopContainer(n.ctx(), &runtimeapi.StopContainerRequest{ContainerId: id}); err != nil {
			t.Fatal(err)
		}
		out, errs := readLog(t, n.status(id).LogPath)
		fields := strings.Join(strings.Fields(out), " ")
		for _, want := range []string{"0 0 200000 65536 ", " 1 0 0 0 ", "written", "by-name", "1 2000 2100"} {
			if !strings.Contains(fields, want) {
				t.Errorf("%s: %q does not contain %q (%s)", pid, fields, want, errs)
			}
		}
		// Mapped back: on the machine the volume's files are still root's.
		fi, err := os.Stat(filepath.Join(shared, "new"))
		if err != nil || fi.Sys().(*syscall.Stat_t).Uid != 0 {
			t.Errorf("%s: the new file: %v, %v", pid, fi, err)
		}
	}
	for want, o := range map[string]*runtimeapi.UserNamespace{
		"2 UID mappings are given": {Uids: append(ids, ids...), Gids: ids},
		"must begin with 0":        {Uids: []*runtimeapi.IDMapping{{ContainerId: 1, HostId: 1, Length: 1}}, Gids: ids},
		"mode CONTAINER":           {Mode: runtimeapi.NamespaceMode_CONTAINER},
	} {
		_, err := n.RunPodSandbox(n.ctx(), &runtimeapi.RunPodSandboxRequest{Config: podConfig(n, "wrong", func(c *runtimeapi.PodSandboxConfig) {
			c.Linux.SecurityContext.NamespaceOptions.UsernsOptions = o
		})})
		if err == nil || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestMetrics asks for what the kubelet's /metrics/cadvisor is made of: every value has
// the labels that its description names.
func TestMetrics(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	pod := n.pod(podConfig(n, "metrics"))
	n.run(pod, containerConfig("app", []string{"sleep", "1000"}, func(c *runtimeapi.ContainerConfig) {
		c.Linux.Resources.MemoryLimitInBytes = 64 << 20
	}))
	client := n.serve()
	descriptors, err := client.ListMetricDescriptors(n.ctx(), &runtimeapi.ListMetricDescriptorsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	labels := map[string][]string{}
	for _, d := range descriptors.Descriptors {
		labels[d.Name] = d.LabelKeys
	}
	list, err := client.ListPodSandboxMetrics(n.ctx(), &runtimeapi.ListPodSandboxMetricsRequest{})
	if err != nil || len(list.PodMetrics) != 1 || len(list.PodMetrics[0].ContainerMetrics) != 1 {
		t.Fatalf("%v, %v", list, err)
	}
	values := map[string]uint64{}
	for _, m := range append(list.PodMetrics[0].Metrics, list.PodMetrics[0].ContainerMetrics[0].Metrics...) {
		if want := labels[m.Name]; len(m.LabelValues) != len(want) {
			t.Errorf("%s has the labels %q, described are %q", m.Name, m.LabelValues, want)
		}
		values[m.Name] = m.Value.GetValue()
	}
	for name, want := range map[string]uint64{"container_spec_memory_limit_bytes": 64 << 20, "container_processes": 1, "container_threads": 1} {
		if values[name] != want {
			t.Errorf("%s is %d, want %d", name, values[name], want)
		}
	}
	if values["container_start_time_seconds"] == 0 || values["container_memory_usage_bytes"] == 0 {
		t.Errorf("%v", values)
	}
}
