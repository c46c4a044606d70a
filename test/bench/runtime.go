package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/periplus/periplus/cri"
)

const (
	execs    = 100
	idlePods = 50
	logBytes = 1 << 30
	logLine  = 1000 // bytes, with the end of the line
)

// A node is a cluster's container runtime, spoken to directly.
type node struct {
	*cluster
	runtime cri.Runtime
	image   string
}

// measureRuntime measures the container runtime through its socket: what an exec takes,
// what an idle pod costs besides its own process, how fast a container may write.
func measureRuntime(ctx context.Context, b *bench) (err error) {
	c, err := b.open(ctx)
	if err != nil {
		return err
	}
	runtime, images, conn, err := cri.Dial(ctx, filepath.Join(c.machine.RunDir(), "cri.sock"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	pulled, err := images.PullImage(ctx, &runtimeapi.PullImageRequest{Image: &runtimeapi.ImageSpec{Image: c.image}})
	if err != nil {
		return err
	}
	n := &node{cluster: c, runtime: runtime, image: pulled.GetImageRef()}
	for _, part := range []func(context.Context, *bench) error{n.execs, n.idle, n.logs} {
		if err := part(ctx, b); err != nil {
			return err
		}
	}
	return nil
}

// run makes a pod with one container and returns both.
func (n *node) run(ctx context.Context, name string, command ...string) (pod, id string, err error) {
	ns := &runtimeapi.NamespaceOption{Pid: runtimeapi.NamespaceMode_CONTAINER}
	config := &runtimeapi.PodSandboxConfig{
		Metadata:     &runtimeapi.PodSandboxMetadata{Name: name, Namespace: namespace, Uid: name},
		LogDirectory: filepath.Join(n.machine.StateDir(), "logs", "bench-"+name),
		Linux:        &runtimeapi.LinuxPodSandboxConfig{SecurityContext: &runtimeapi.LinuxSandboxSecurityContext{NamespaceOptions: ns}},
	}
	made, err := n.runtime.RunPodSandbox(ctx, &runtimeapi.RunPodSandboxRequest{Config: config})
	if err != nil {
		return "", "", err
	}
	created, err := n.runtime.CreateContainer(ctx, &runtimeapi.CreateContainerRequest{
		PodSandboxId: made.GetPodSandboxId(), SandboxConfig: config, Config: &runtimeapi.ContainerConfig{
			Metadata: &runtimeapi.ContainerMetadata{Name: name}, Image: &runtimeapi.ImageSpec{Image: n.image},
			Command: command, LogPath: "0.log",
			Linux: &runtimeapi.LinuxContainerConfig{SecurityContext: &runtimeapi.LinuxContainerSecurityContext{NamespaceOptions: ns}},
		},
	})
	if err != nil {
		return "", "", err
	}
	_, err = n.runtime.StartContainer(ctx, &runtimeapi.StartContainerRequest{ContainerId: created.GetContainerId()})
	return made.GetPodSandboxId(), created.GetContainerId(), err
}

func (n *node) remove(ctx context.Context, pod string) error {
	_, err := n.runtime.RemovePodSandbox(ctx, &runtimeapi.RemovePodSandboxRequest{PodSandboxId: pod})
	return err
}

func (n *node) execs(ctx context.Context, b *bench) error {
	pod, id, err := n.run(ctx, "exec", "sleep", "1000000")
	if err != nil {
		return err
	}
	var took []time.Duration
	for range execs {
		start := time.Now()
		if _, err := n.runtime.ExecSync(ctx, &runtimeapi.ExecSyncRequest{ContainerId: id, Cmd: []string{"true"}}); err != nil {
			return err
		}
		took = append(took, time.Since(start))
	}
	b.results.durations("exec in a container", took, "", "")
	return n.remove(ctx, pod)
}

func (n *node) idle(ctx context.Context, b *bench) error {
	before, err := n.processes()
	if err != nil {
		return err
	}
	var pods []string
	for i := range idlePods {
		pod, _, err := n.run(ctx, "idle-"+strconv.Itoa(i), "sleep", "1000000")
		if err != nil {
			return err
		}
		pods = append(pods, pod)
	}
	after, err := n.processes()
	if err != nil {
		return err
	}
	note := fmt.Sprintf("%d pods of one container, without its own process", idlePods)
	b.results.add(figure{Name: "an idle pod, memory of peri and its monitor", Unit: "MiB", Value: (after.Anon - before.Anon) / idlePods, Target: "< 0.5 MiB", Upstream: "5.2 MiB", Note: note})
	b.results.add(figure{Name: "an idle pod, processes", Unit: "", Value: float64(after.count-before.count) / idlePods, Target: "0", Upstream: "2", Note: note})
	for _, pod := range pods {
		if err := n.remove(ctx, pod); err != nil {
			return err
		}
	}
	return nil
}

type processes struct {
	usage
	count int
}

// processes counts and measures those that are not of containers.
func (n *node) processes() (processes, error) {
	pids, err := n.machine.Processes()
	if err != nil {
		return processes{}, err
	}
	u, err := measure(pids)
	return processes{u, len(pids)}, err
}

// logs lets a container write as fast as it can. Its log is rotated meanwhile: nothing of
// it is lost before it was in a file, since the container waits for its log.
func (n *node) logs(ctx context.Context, b *bench) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan struct{})
	listening := make(chan struct{})
	var id string
	named := make(chan struct{})
	failed := make(chan error, 1)
	go func() {
		failed <- n.runtime.Events(ctx, func() { close(listening) }, func(e *runtimeapi.ContainerEventResponse) {
			<-named
			if e.GetContainerId() == id && e.GetContainerEventType() == runtimeapi.ContainerEventType_CONTAINER_STOPPED_EVENT {
				close(ended)
			}
		})
	}()
	<-listening
	start := time.Now()
	script := fmt.Sprintf("l=$(printf %%%ds x); yes \"$l\" | head -c %d", logLine-1, logBytes)
	pod, made, err := n.run(ctx, "logs", "sh", "-c", script)
	id = made
	close(named)
	if err != nil {
		return err
	}
	select {
	case <-ended:
	case err := <-failed:
		return fmt.Errorf("events of containers: %w", err)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	took := time.Since(start)
	b.results.add(figure{Name: "log of a container", Unit: "MB/s", Value: logBytes / 1e6 / took.Seconds(), Note: "1 GiB in lines of 1,000 bytes"})
	return n.remove(ctx, pod)
}
