package podcgroup_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/periplus/periplus/linux/podcgroup"
)

func pod(requests, limits corev1.ResourceList) *corev1.Pod {
	p := &corev1.Pod{}
	p.UID = "8c1b"
	p.Spec.Containers = []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: requests, Limits: limits}}}
	return p
}

func list(cpu, memory string) corev1.ResourceList {
	l := corev1.ResourceList{}
	if cpu != "" {
		l[corev1.ResourceCPU] = resource.MustParse(cpu)
	}
	if memory != "" {
		l[corev1.ResourceMemory] = resource.MustParse(memory)
	}
	return l
}

func TestQOS(t *testing.T) {
	t.Parallel()
	for want, p := range map[corev1.PodQOSClass]*corev1.Pod{
		corev1.PodQOSBestEffort: pod(nil, nil),
		corev1.PodQOSBurstable:  pod(list("1", ""), nil),
		corev1.PodQOSGuaranteed: pod(list("1", "1Gi"), list("1", "1Gi")),
	} {
		if got := podcgroup.QOS(p); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if got := podcgroup.QOS(pod(list("1", "1Gi"), list("2", "1Gi"))); got != corev1.PodQOSBurstable {
		t.Errorf("a request below the limit: %s", got)
	}
}

func TestSharesAndQuota(t *testing.T) {
	t.Parallel()
	for milli, want := range map[int64][2]int64{0: {2, 0}, 1: {2, 1000}, 100: {102, 10_000}, 1500: {1536, 150_000}, 1 << 30: {262_144, 107_374_182_400}} {
		if s, q := podcgroup.Shares(milli), podcgroup.Quota(milli); s != want[0] || q != want[1] {
			t.Errorf("%dm: shares %d, quota %d, want %v", milli, s, q, want)
		}
	}
}

// TestMachine makes real cgroups below a root of its own.
func TestMachine(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("cgroups need root")
	}
	root := fmt.Sprintf("/podcgroup-test-%d", os.Getpid())
	tree, err := podcgroup.New(root)
	if err != nil {
		t.Skipf("no cgroups here: %v", err)
	}
	t.Cleanup(func() { sweep(t, root) })
	tree.Limit(4000, 1<<30)

	p := pod(list("500m", "64Mi"), list("1", "64Mi"))
	parent, err := tree.Ensure(p)
	if err != nil {
		t.Skipf("this machine does not let us make cgroups: %v", err)
	}
	if want := root + "/kubepods/burstable/pod8c1b"; parent != want {
		t.Errorf("parent %s, want %s", parent, want)
	}
	check := func(want string, paths ...string) {
		for _, path := range paths {
			b, err := os.ReadFile(path)
			if err != nil {
				continue
			}
			if got := strings.TrimSpace(string(b)); got != want {
				t.Errorf("%s: %s, want %s", path, got, want)
			}
		}
	}
	check("512", "/sys/fs/cgroup/cpu"+parent+"/cpu.shares")
	check("100000", "/sys/fs/cgroup/cpu"+parent+"/cpu.cfs_quota_us")
	check("67108864", "/sys/fs/cgroup/memory"+parent+"/memory.limit_in_bytes", "/sys/fs/cgroup"+parent+"/memory.max")

	// The classes share the processors: what Burstable requests, and the least for BestEffort.
	check("2", "/sys/fs/cgroup/cpu"+root+"/kubepods/besteffort/cpu.shares")
	check("512", "/sys/fs/cgroup/cpu"+root+"/kubepods/burstable/cpu.shares")
	check("4096", "/sys/fs/cgroup/cpu"+root+"/kubepods/cpu.shares")
	check("1073741824", "/sys/fs/cgroup/memory"+root+"/kubepods/memory.limit_in_bytes", "/sys/fs/cgroup"+root+"/kubepods/memory.max")
	second := pod(list("250m", ""), nil)
	second.UID = "8c1c"
	if _, err := tree.Ensure(second); err != nil {
		t.Fatal(err)
	}
	check("768", "/sys/fs/cgroup/cpu"+root+"/kubepods/burstable/cpu.shares")
	if err := tree.Remove(second.UID); err != nil {
		t.Fatal(err)
	}
	check("512", "/sys/fs/cgroup/cpu"+root+"/kubepods/burstable/cpu.shares")

	// Another process, which remembers nothing, removes it with what a runtime left in it.
	for _, dir := range find(parent) {
		if err := os.Mkdir(filepath.Join(dir, "container"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	again, err := podcgroup.New(root)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Remove(types.UID("8c1b")); err != nil {
		t.Fatal(err)
	}
	if left := find(parent); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func find(path string) []string {
	a, _ := filepath.Glob("/sys/fs/cgroup/*" + path)
	b, _ := filepath.Glob("/sys/fs/cgroup" + path)
	return append(a, b...)
}

func sweep(t *testing.T, root string) {
	for _, dir := range []string{"/kubepods/burstable", "/kubepods/besteffort", "/kubepods", ""} {
		for _, d := range find(root + dir) {
			if fi, err := os.Lstat(filepath.Dir(d)); err == nil && fi.Mode()&os.ModeSymlink != 0 {
				continue
			}
			if err := os.Remove(d); err != nil && !os.IsNotExist(err) {
				t.Errorf("left behind: %v", err)
			}
		}
	}
}
