package podcgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Controllers of v1 in which pods get a directory.
var v1Controllers = []string{"cpu", "cpuacct", "cpuset", "memory", "pids", "blkio", "devices", "freezer", "hugetlb", "net_cls", "net_prio", "perf_event", "rdma", "misc"}

// Tree makes pods' cgroups below one root.
type Tree struct {
	mountPoint string // /sys/fs/cgroup
	root       string // "/" or where this kubelet may work
	unified    bool
	trees      []string // v1: distinct hierarchies' directories; v2: the one
	// all are also the hierarchies without a controller (name=systemd), in which OCI
	// runtimes make the same cgroups. Here they are only removed.
	all []string

	mu        sync.Mutex // guards the rest and serialises changes of the shared parents
	pods      map[types.UID]string
	requests  map[types.UID]int64 // CPU of burstable pods, in millicores
	node      limits              // of all pods together
	burstable int64               // shares that the class has; 0: not set yet
	prepared  bool                // the shared parents have their limits
	pids      int64               // how many processes a pod may have; 0: not bounded
}

// New returns the Tree below root ("/" if empty) of the machine's cgroup file system.
func New(root string) (*Tree, error) { return NewAt("/sys/fs/cgroup", root) }

// NewAt is New for a cgroup file system mounted elsewhere.
func NewAt(mountPoint, root string) (*Tree, error) {
	t := &Tree{mountPoint: mountPoint, root: filepath.Join("/", root), pods: map[types.UID]string{}, requests: map[types.UID]int64{}}
	if _, err := os.Stat(filepath.Join(mountPoint, "cgroup.controllers")); err == nil {
		t.unified, t.trees = true, []string{mountPoint}
		t.all = t.trees
		return t, nil
	}
	for _, c := range v1Controllers {
		dir := filepath.Join(mountPoint, c)
		real, err := filepath.EvalSymlinks(dir) // cpu may be a link to cpu,cpuacct
		if err != nil {
			continue
		}
		if !slices.Contains(t.trees, real) {
			t.trees = append(t.trees, real)
		}
	}
	all, err := filepath.Glob(filepath.Join(mountPoint, "*"))
	if err != nil {
		return nil, err
	}
	for _, dir := range all {
		// "cpu" may be a link to "cpu,cpuacct"; "unified" has no such cgroups.
		if info, err := os.Lstat(dir); err == nil && info.IsDir() {
			t.all = append(t.all, dir)
		}
	}
	if len(t.trees) == 0 {
		return nil, fmt.Errorf("no cgroup controllers under %s: is the cgroup file system mounted?", mountPoint)
	}
	return t, nil
}

// Parent is the path of a pod's cgroup, as runtimes want it.
func (t *Tree) Parent(pod *corev1.Pod) string {
	dir := "kubepods"
	switch QOS(pod) {
	case corev1.PodQOSBestEffort:
		dir = "kubepods/besteffort"
	case corev1.PodQOSBurstable:
		dir = "kubepods/burstable"
	}
	return filepath.Join(t.root, dir, "pod"+string(pod.UID))
}

// Ensure makes or adjusts the pod's cgroup and returns Parent.
func (t *Tree) Ensure(pod *corev1.Pod) (string, error) {
	parent := t.Parent(pod)
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.mkdirAll(parent); err != nil {
		return "", fmt.Errorf("making the cgroup of pod %s: %w", pod.UID, err)
	}
	if t.pids > 0 {
		if err := t.set("pids", parent, "pids.max", strconv.FormatInt(t.pids, 10)); err != nil {
			return "", fmt.Errorf("limiting the processes of pod %s: %w", pod.UID, err)
		}
	}
	if err := t.limit(parent, limitsOf(pod)); err != nil {
		return "", fmt.Errorf("limiting the cgroup of pod %s: %w", pod.UID, err)
	}
	t.pods[pod.UID] = parent
	if err := t.shareOut(pod); err != nil {
		return "", fmt.Errorf("dividing the processors among the classes of pods: %w", err)
	}
	return parent, nil
}

func (t *Tree) mkdirAll(paths ...string) error {
	for _, tree := range t.trees {
		for _, p := range paths {
			if err := t.mkdir(tree, p); err != nil {
				return err
			}
		}
	}
	return nil
}

// mkdir makes parent and what is above it in one hierarchy. New directories of
// cpuset inherit the processors, those of v2 hand the controllers down.
func (t *Tree) mkdir(tree, path string) error {
	dir := tree
	if err := t.handDown(dir); err != nil && !errors.Is(err, fs.ErrPermission) {
		return err
	}
	for _, part := range strings.Split(strings.Trim(path, "/"), "/") {
		above := dir
		dir = filepath.Join(dir, part)
		err := os.Mkdir(dir, 0o755) //nolint:gosec // as all cgroups are
		switch {
		case errors.Is(err, fs.ErrExist):
			continue
		case err != nil:
			return err
		}
		if strings.HasSuffix(tree, "cpuset") {
			for _, f := range []string{"cpuset.cpus", "cpuset.mems"} {
				if b, err := os.ReadFile(filepath.Join(above, f)); err == nil {
					_ = os.WriteFile(filepath.Join(dir, f), b, 0o644) //nolint:gosec // a kernel file
				}
			}
		}
		if err := t.handDown(dir); err != nil {
			return err
		}
	}
	return nil
}

// handDown enables, in v2, all controllers of dir for its children.
func (t *Tree) handDown(dir string) error {
	if !t.unified {
		return nil
	}
	have, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return err
	}
	enabled, err := os.ReadFile(filepath.Join(dir, "cgroup.subtree_control"))
	if err != nil {
		return err
	}
	var add []string
	on := strings.Fields(string(enabled))
	for _, c := range strings.Fields(string(have)) {
		if !slices.Contains(on, c) {
			add = append(add, "+"+c)
		}
	}
	if len(add) == 0 {
		return nil
	}
	return os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte(strings.Join(add, " ")), 0o644) //nolint:gosec // a kernel file
}

// set writes one file of a cgroup, if the machine has its controller.
func (t *Tree) set(controller, parent, file, value string) error {
	dir := filepath.Join(t.mountPoint, controller, parent)
	if t.unified {
		dir = filepath.Join(t.mountPoint, parent)
	}
	path := filepath.Join(dir, file)
	if _, err := os.Stat(path); err != nil {
		return nil // the controller is not there
	}
	return os.WriteFile(path, []byte(value), 0o644) //nolint:gosec // a kernel file
}

func (t *Tree) limit(parent string, l limits) error {
	set := func(controller, file, value string) error { return t.set(controller, parent, file, value) }
	str := func(v int64) string { return strconv.FormatInt(v, 10) }
	if t.unified {
		quota, memory := "max", "max"
		if l.quota > 0 {
			quota = str(l.quota)
		}
		if l.memory > 0 {
			memory = str(l.memory)
		}
		if l.shares > 0 {
			if err := set("", "cpu.weight", str(weight(l.shares))); err != nil {
				return err
			}
		}
		return errors.Join(
			set("", "cpu.max", quota+" "+str(Period)),
			set("", "memory.max", memory))
	}
	quota, memory := int64(-1), int64(-1)
	if l.quota > 0 {
		quota = l.quota
	}
	if l.memory > 0 {
		memory = l.memory
	}
	if l.shares > 0 {
		if err := set("cpu", "cpu.shares", str(l.shares)); err != nil {
			return err
		}
	}
	return errors.Join(
		set("cpu", "cpu.cfs_period_us", str(Period)),
		set("cpu", "cpu.cfs_quota_us", str(quota)),
		set("memory", "memory.limit_in_bytes", str(memory)))
}

// Remove removes the pod's cgroup with all that is below it. Nothing may run in
// it. It also finds cgroups of an earlier process.
func (t *Tree) Remove(pod types.UID) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	var candidates []string
	if p, ok := t.pods[pod]; ok {
		candidates = []string{p}
	} else {
		for _, dir := range []string{"kubepods", "kubepods/burstable", "kubepods/besteffort"} {
			candidates = append(candidates, filepath.Join(t.root, dir, "pod"+string(pod)))
		}
	}
	for _, tree := range t.all {
		for _, c := range candidates {
			if err := removeTree(filepath.Join(tree, c)); err != nil {
				return fmt.Errorf("removing the cgroup of pod %s: %w", pod, err)
			}
		}
	}
	delete(t.pods, pod)
	if _, ok := t.requests[pod]; ok {
		delete(t.requests, pod)
		return t.shareOut(nil)
	}
	return nil
}

// removeTree removes cgroup directories from the leaves up; their files go with them.
func removeTree(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() {
			if err := removeTree(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// RemoveAll removes the cgroups of all pods, and the root if it is ours alone
// (not "/") and empty. Nothing may run in them.
func (t *Tree) RemoveAll() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, tree := range t.all {
		if err := removeTree(filepath.Join(tree, t.root, "kubepods")); err != nil {
			return fmt.Errorf("removing the cgroups of pods: %w", err)
		}
		if t.root != "/" {
			// Others may use it too; then it stays.
			_ = os.Remove(filepath.Join(tree, t.root))
		}
	}
	clear(t.pods)
	clear(t.requests)
	t.prepared, t.burstable = false, 0
	return nil
}
