package containers_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// TestConfinement looks from inside at what the configuration promised.
func TestConfinement(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	pod := n.pod(podConfig(n, "confined", func(c *runtimeapi.PodSandboxConfig) {
		c.Linux.Sysctls = map[string]string{"net.ipv4.ip_unprivileged_port_start": "80", "kernel.shm_rmid_forced": "1"}
	}))
	host := t.TempDir()
	if err := os.WriteFile(filepath.Join(host, "file"), []byte("from the host\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	type change = func(*runtimeapi.ContainerConfig)
	sc := func(c *runtimeapi.ContainerConfig) *runtimeapi.LinuxContainerSecurityContext {
		return c.Linux.SecurityContext
	}
	for name, c := range map[string]struct {
		script string
		want   string
		change change
	}{
		"sysctl": {script: "cat /proc/sys/net/ipv4/ip_unprivileged_port_start /proc/sys/kernel/shm_rmid_forced", want: "80\n1\n"},
		"user by name": {script: "id; echo $HOME", want: "uid=1000(app) gid=1001 groups=50(staff),1001,2000\n/home/app\n",
			change: func(c *runtimeapi.ContainerConfig) {
				sc(c).RunAsUsername, sc(c).SupplementalGroups = "app", []int64{2000}
			}},
		"user by number, strict groups": {script: "id -u; id -g; id -G", want: "1000\n7\n7\n",
			change: func(c *runtimeapi.ContainerConfig) {
				sc(c).RunAsUser, sc(c).RunAsGroup = &runtimeapi.Int64Value{Value: 1000}, &runtimeapi.Int64Value{Value: 7}
				sc(c).SupplementalGroupsPolicy = runtimeapi.SupplementalGroupsPolicy_Strict
			}},
		"no capabilities": {script: "grep -E 'CapEff|NoNewPrivs' /proc/self/status", want: "CapEff:\t0000000000000000\nNoNewPrivs:\t1\n",
			change: func(c *runtimeapi.ContainerConfig) {
				sc(c).Capabilities, sc(c).NoNewPrivs = &runtimeapi.Capability{DropCapabilities: []string{"ALL"}}, true
			}},
		"seccomp": {script: "grep Seccomp: /proc/self/status; sleep 0; ls / | head -1", want: "Seccomp:\t2\nbin\n",
			change: func(c *runtimeapi.ContainerConfig) {
				sc(c).Seccomp = &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_RuntimeDefault}
			}},
		"read-only root": {script: "echo x >/tmp/x || echo refused", want: "refused\n",
			change: func(c *runtimeapi.ContainerConfig) { sc(c).ReadonlyRootfs = true }},
		"masked": {script: "echo x >/proc/sys/kernel/hostname || echo refused; ls /sys/firmware", want: "refused\n",
			change: func(c *runtimeapi.ContainerConfig) {
				sc(c).MaskedPaths, sc(c).ReadonlyPaths = []string{"/proc/acpi", "/sys/firmware"}, []string{"/proc/sys"}
			}},
		"bind": {script: "cat /data/file; echo x >/data/y || echo refused", want: "from the host\nrefused\n",
			change: func(c *runtimeapi.ContainerConfig) {
				c.Mounts = []*runtimeapi.Mount{{ContainerPath: "/data", HostPath: host, Readonly: true}}
			}},
		"privileged": {script: "ls /dev/kmsg; mount -t tmpfs none /tmp && echo mounted", want: "/dev/kmsg\nmounted\n",
			change: func(c *runtimeapi.ContainerConfig) { sc(c).Privileged = true }},
		"memory limit": {script: "cat /sys/fs/cgroup/memory/memory.limit_in_bytes 2>&- || cat /sys/fs/cgroup/memory.max", want: "33554432\n",
			change: func(c *runtimeapi.ContainerConfig) { c.Linux.Resources.MemoryLimitInBytes = 32 << 20 }},
	} {
		id := n.run(pod, containerConfig(strings.ReplaceAll(name, " ", "-"), sh(c.script+" 2>/dev/null"), func(cc *runtimeapi.ContainerConfig) {
			if c.change != nil {
				c.change(cc)
			}
		}))
		n.ended(id)
		out, errs := readLog(t, n.status(id).LogPath)
		if out != c.want {
			t.Errorf("%s: %q (stderr %q), want %q", name, out, errs, c.want)
		}
	}
}

func TestHostNetwork(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	pod := n.pod(podConfig(n, "host", func(c *runtimeapi.PodSandboxConfig) {
		c.Linux.SecurityContext.NamespaceOptions.Network = runtimeapi.NamespaceMode_NODE
		c.Linux.SecurityContext.NamespaceOptions.Ipc = runtimeapi.NamespaceMode_NODE
	}))
	id := n.run(pod, containerConfig("app", []string{"sleep", "1000"}))
	want, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := n.exec(id, "ls -l /proc/self/ns/net"); !strings.Contains(got, want) {
		t.Errorf("network namespace %q, want %q", got, want)
	}
	if st, err := n.PodSandboxStatus(n.ctx(), &runtimeapi.PodSandboxStatusRequest{PodSandboxId: pod}); err != nil || st.Status.Network.Ip != "" {
		t.Errorf("status: %v, %v", st, err)
	}
}

func TestUpdateAndStats(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	pod := n.pod(podConfig(n, "stats"))
	id := n.run(pod, containerConfig("app", []string{"sleep", "1000"}, func(c *runtimeapi.ContainerConfig) {
		c.Linux.Resources.MemoryLimitInBytes, c.Linux.Resources.CpuShares = 64<<20, 100
	}))
	_, err := n.UpdateContainerResources(n.ctx(), &runtimeapi.UpdateContainerResourcesRequest{ContainerId: id,
		Linux: &runtimeapi.LinuxContainerResources{MemoryLimitInBytes: 96 << 20, CpuQuota: 50_000, CpuPeriod: 100_000}})
	if err != nil {
		t.Fatal(err)
	}
	res := n.status(id).Resources.Linux
	if res.MemoryLimitInBytes != 96<<20 || res.CpuShares != 100 || res.CpuQuota != 50_000 {
		t.Errorf("resources after update: %v", res)
	}
	st, err := n.PodSandboxStats(n.ctx(), &runtimeapi.PodSandboxStatsRequest{PodSandboxId: pod})
	if err != nil {
		t.Fatal(err)
	}
	linux := st.Stats.Linux
	if len(linux.Containers) != 1 || linux.Memory.GetWorkingSetBytes().GetValue() == 0 || linux.Process.GetProcessCount().GetValue() == 0 {
		t.Fatalf("pod stats: %v", st.Stats)
	}
	c := linux.Containers[0]
	used, available := c.Memory.GetWorkingSetBytes().GetValue(), c.Memory.GetAvailableBytes().GetValue()
	if c.Cpu.GetUsageCoreNanoSeconds().GetValue() == 0 || used+available != 96<<20 {
		t.Errorf("container stats: %v", c)
	}
	if c.WritableLayer.GetUsedBytes().GetValue() != 4096 {
		t.Errorf("writable layer: %v", c.WritableLayer)
	}
}
