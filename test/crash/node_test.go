package crash

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/periplus/periplus/cri"
	"github.com/periplus/periplus/test/netlab"
)

// A running is one container as the runtime and the API tell of it; it must not
// change while the pod exists.
type running struct {
	ID      string
	Created int64
	Started int64
	Restart int32
}

// A node asks the runtime, past the API.
type node struct {
	machine *netlab.Machine
	runtime cri.Runtime
	closer  io.Closer
}

func openNode(ctx context.Context, m *netlab.Machine) (*node, error) {
	r, _, closer, err := cri.Dial(ctx, filepath.Join(m.RunDir(), "cri.sock"))
	if err != nil {
		return nil, err
	}
	return &node{machine: m, runtime: r, closer: closer}, nil
}

// follow wakes the view with every event of the runtime until ctx ends.
func (n *node) follow(ctx context.Context, v *view) {
	_ = n.runtime.Events(ctx, v.wake, func(*runtimeapi.ContainerEventResponse) { v.wake() }) // the test's end, or its own failure
}

// check compares the runtime with pods that have all settled: a sandbox and a
// container each, and nothing beside them on the machine.
func (n *node) check(ctx context.Context, pods []*corev1.Pod) error {
	alive := map[string]bool{} // every ID that may appear on the machine
	wanted := map[string]*corev1.Pod{}
	for _, p := range pods {
		alive[string(p.UID)], wanted[string(p.UID)] = true, p
	}
	boxes, err := n.runtime.ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{})
	if err != nil {
		return err
	}
	var wrong []error
	seen := map[string]int{}
	for _, b := range boxes.Items {
		uid := b.Metadata.Uid
		alive[b.Id] = true
		seen[uid]++
		switch {
		case wanted[uid] == nil:
			wrong = append(wrong, fmt.Errorf("sandbox %s of %s: its pod is gone", b.Id, b.Metadata.Name))
		case b.State != runtimeapi.PodSandboxState_SANDBOX_READY:
			wrong = append(wrong, fmt.Errorf("sandbox %s of %s is %v", b.Id, b.Metadata.Name, b.State))
		case seen[uid] > 1:
			wrong = append(wrong, fmt.Errorf("pod %s has %d sandboxes", b.Metadata.Name, seen[uid]))
		}
	}
	list, err := n.runtime.ListContainers(ctx, &runtimeapi.ListContainersRequest{})
	if err != nil {
		return err
	}
	for _, c := range list.Containers {
		alive[c.Id] = true
	}
	for uid, p := range wanted {
		if seen[uid] == 0 {
			wrong = append(wrong, fmt.Errorf("pod %s has no sandbox", p.Name))
		}
		if err := containersOf(p, list.Containers); err != nil {
			wrong = append(wrong, err)
		}
	}
	if len(list.Containers) != len(pods) {
		wrong = append(wrong, fmt.Errorf("%d containers of %d pods with one each", len(list.Containers), len(pods)))
	}
	traces, err := n.traces(ctx, alive, len(boxes.Items))
	return errors.Join(append(wrong, err, traces)...)
}

// containersOf checks that a pod's only container is the one that the API shows.
func containersOf(p *corev1.Pod, all []*runtimeapi.Container) error {
	status := p.Status.ContainerStatuses
	if len(status) != 1 || status[0].RestartCount != 0 {
		return fmt.Errorf("pod %s: container statuses %+v", p.Name, status)
	}
	found := 0
	for _, c := range all {
		if c.Labels["io.kubernetes.pod.uid"] != string(p.UID) {
			continue
		}
		found++
		if c.State != runtimeapi.ContainerState_CONTAINER_RUNNING || !strings.HasSuffix(status[0].ContainerID, "://"+c.Id) {
			return fmt.Errorf("pod %s: container %s is %v, the API shows %s", p.Name, c.Id, c.State, status[0].ContainerID)
		}
	}
	if found != 1 {
		return fmt.Errorf("pod %s has %d containers", p.Name, found)
	}
	return nil
}

// id finds the names that kubelet and runtime give to files, mounts and cgroups.
var id = regexp.MustCompile(`[0-9a-f]{64}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// places are where a pod, a sandbox or a container has files, below the machine's directory.
var places = []string{
	"state/kubelet/pods/*", "state/logs/pods/*", "state/containers/containers/*", "state/containers/sandboxes/*",
	"state/snapshots/active/*", "run/containers/*/*",
}

// traces looks for what belongs to nothing that is alive.
func (n *node) traces(ctx context.Context, alive map[string]bool, sandboxes int) (wrong, err error) {
	mounts, err := n.machine.Mounts()
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, m := range mounts { // the machine was born with those of this one
		if strings.HasPrefix(m, n.machine.Dir()+"/") {
			paths = append(paths, m)
		}
	}
	cgroups, err := n.machine.Cgroups()
	if err != nil {
		return nil, err
	}
	paths = append(paths, cgroups...)
	for _, pattern := range places {
		found, err := filepath.Glob(filepath.Join(n.machine.Dir(), pattern))
		if err != nil {
			return nil, err
		}
		paths = append(paths, found...)
	}
	var left []error
	for _, path := range paths {
		for _, i := range id.FindAllString(path, -1) {
			if !alive[i] {
				left = append(left, fmt.Errorf("left behind: %s", path))
				break
			}
		}
	}
	addresses, err := filepath.Glob(filepath.Join(n.machine.StateDir(), "network/ipam/*/*.*.*.*"))
	if err != nil {
		return nil, err
	}
	if len(addresses) != sandboxes {
		left = append(left, fmt.Errorf("%d addresses for %d sandboxes", len(addresses), sandboxes))
	}
	links, err := n.machine.Output(ctx, "ip", "-o", "link", "show", "type", "veth")
	if err != nil {
		return nil, err
	}
	// The machine's own pair has been there before.
	if pods := strings.Count(links, "\n") - 2; pods != sandboxes {
		left = append(left, fmt.Errorf("%d interfaces for %d sandboxes", pods, sandboxes))
	}
	return errors.Join(left...), nil
}

// run describes what runs in pods, by the names of the pods.
func (n *node) run(ctx context.Context, pods []*corev1.Pod) (map[string]running, error) {
	out := map[string]running{}
	for _, p := range pods {
		list, err := n.runtime.ListContainers(ctx, &runtimeapi.ListContainersRequest{
			Filter: &runtimeapi.ContainerFilter{LabelSelector: map[string]string{"io.kubernetes.pod.uid": string(p.UID)}},
		})
		if err != nil {
			return nil, err
		}
		if len(list.Containers) != 1 || len(p.Status.ContainerStatuses) != 1 {
			return nil, fmt.Errorf("pod %s has %d containers, status %+v", p.Name, len(list.Containers), p.Status.ContainerStatuses)
		}
		c := list.Containers[0]
		s, err := n.runtime.ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: c.Id})
		if err != nil {
			return nil, err
		}
		if s.Status.State != runtimeapi.ContainerState_CONTAINER_RUNNING {
			return nil, fmt.Errorf("pod %s: its container is %v: %s", p.Name, s.Status.State, s.Status.Message)
		}
		// The container's own count of its starts, in a volume of the pod.
		starts, err := os.ReadFile(filepath.Join(n.machine.StateDir(), "kubelet/pods", string(p.UID), "volumes/kubernetes.io~empty-dir/data/starts"))
		if err != nil {
			return nil, err
		}
		if string(starts) != "started\n" {
			return nil, fmt.Errorf("pod %s: its container has started more than once: %q", p.Name, starts)
		}
		out[p.Name] = running{c.Id, s.Status.CreatedAt, s.Status.StartedAt, p.Status.ContainerStatuses[0].RestartCount}
	}
	return out, nil
}
