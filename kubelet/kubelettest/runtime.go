package kubelettest

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/periplus/periplus/cri"
)

// Runtime is a container runtime in memory. The zero value is not usable, see New.
type Runtime struct {
	// unimplemented answers the calls that no test needs.
	cri.Runtime

	// OnStart, if set, is called after a container was started, without locks held.
	OnStart func(r *Runtime, id string, config *runtimeapi.ContainerConfig)
	// StopHangs makes StopContainer wait until its grace is over or its context ends.
	StopHangs bool
	// CannotStart makes every StartContainer fail: the container exits with 128.
	CannotStart bool

	mu         sync.Mutex // guards the rest
	n          int
	boxes      map[string]*box
	containers map[string]*record
	calls      []string
	listeners  map[int]chan *runtimeapi.ContainerEventResponse
	networkUp  bool
	podCIDR    string
	exec       func(id string, cmd []string) (stdout string, code int32)
}

type box struct {
	config  *runtimeapi.PodSandboxConfig
	id, ip  string
	ready   bool
	created int64
}

type record struct {
	id, box                    string
	config                     *runtimeapi.ContainerConfig
	state                      runtimeapi.ContainerState
	created, started, finished int64
	code                       int32
	reason                     string
}

// New returns a runtime whose network is ready.
func New() *Runtime {
	return &Runtime{boxes: map[string]*box{}, containers: map[string]*record{},
		listeners: map[int]chan *runtimeapi.ContainerEventResponse{}, networkUp: true}
}

// SetNetwork says whether the network is ready without a pod range.
func (r *Runtime) SetNetwork(up bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.networkUp = up
}

// OnExec answers ExecSync.
func (r *Runtime) OnExec(f func(id string, cmd []string) (string, int32)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.exec = f
}

// Calls returns the changes asked for so far, "verb name" in order.
func (r *Runtime) Calls() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.calls...)
}

// Containers returns how many containers exist, and how many of them run.
func (r *Runtime) Containers() (all, running int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.containers {
		if c.state == runtimeapi.ContainerState_CONTAINER_RUNNING {
			running++
		}
	}
	return len(r.containers), running
}

// Sandboxes returns how many sandboxes exist.
func (r *Runtime) Sandboxes() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.boxes)
}

// Running returns the ID of the running container of the name, "" if there is none.
func (r *Runtime) Running(name string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, c := range r.containers {
		if c.config.Metadata.Name == name && c.state == runtimeapi.ContainerState_CONTAINER_RUNNING {
			return id
		}
	}
	return ""
}

// Config returns the configuration of a container.
func (r *Runtime) Config(id string) *runtimeapi.ContainerConfig {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.containers[id].config
}

// Sandbox returns the configuration of any sandbox of the pod.
func (r *Runtime) Sandbox(pod string) *runtimeapi.PodSandboxConfig {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, b := range r.boxes {
		if b.config.Metadata.Name == pod {
			return b.config
		}
	}
	return nil
}

// PodCIDR is what the kubelet said.
func (r *Runtime) PodCIDR() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.podCIDR
}

// Exit ends a running container.
func (r *Runtime) Exit(id string, code int32) {
	r.mu.Lock()
	c := r.containers[id]
	if c == nil || c.state != runtimeapi.ContainerState_CONTAINER_RUNNING {
		r.mu.Unlock()
		return
	}
	r.exitLocked(c, code)
	r.mu.Unlock()
}

func (r *Runtime) exitLocked(c *record, code int32) {
	c.state, c.code, c.finished = runtimeapi.ContainerState_CONTAINER_EXITED, code, time.Now().UnixNano()
	c.reason = "Completed"
	if code != 0 {
		c.reason = "Error"
	}
	r.emitLocked(c.id, c.box, runtimeapi.ContainerEventType_CONTAINER_STOPPED_EVENT)
}

func (r *Runtime) emitLocked(id, boxID string, kind runtimeapi.ContainerEventType) {
	e := &runtimeapi.ContainerEventResponse{ContainerId: id, ContainerEventType: kind, CreatedAt: time.Now().UnixNano()}
	if b := r.boxes[boxID]; b != nil {
		e.PodSandboxStatus = b.status()
	}
	for _, ch := range r.listeners {
		ch <- e
	}
}

func (b *box) status() *runtimeapi.PodSandboxStatus {
	s := &runtimeapi.PodSandboxStatus{Id: b.id, Metadata: b.config.Metadata, CreatedAt: b.created,
		State: runtimeapi.PodSandboxState_SANDBOX_NOTREADY, Labels: b.config.Labels, Annotations: b.config.Annotations,
		Network: &runtimeapi.PodSandboxNetworkStatus{},
		Linux: &runtimeapi.LinuxPodSandboxStatus{Namespaces: &runtimeapi.Namespace{
			Options: b.config.GetLinux().GetSecurityContext().GetNamespaceOptions()}}}
	if b.ready {
		s.State = runtimeapi.PodSandboxState_SANDBOX_READY
		s.Network.Ip = b.ip
	}
	return s
}

// Events implements cri.Runtime.
func (r *Runtime) Events(ctx context.Context, started func(), handle func(*runtimeapi.ContainerEventResponse)) error {
	ch := make(chan *runtimeapi.ContainerEventResponse, 1000)
	r.mu.Lock()
	r.n++
	key := r.n
	r.listeners[key] = ch
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		delete(r.listeners, key)
		r.mu.Unlock()
	}()
	if started != nil {
		started()
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case e := <-ch:
			handle(e)
		}
	}
}

func (r *Runtime) noteLocked(format string, args ...any) {
	r.calls = append(r.calls, fmt.Sprintf(format, args...))
}

// Version implements cri.Runtime.
func (r *Runtime) Version(context.Context, *runtimeapi.VersionRequest) (*runtimeapi.VersionResponse, error) {
	return &runtimeapi.VersionResponse{Version: "0.1.0", RuntimeName: "fake", RuntimeVersion: "v1", RuntimeApiVersion: "v1"}, nil
}

// Status implements cri.Runtime.
func (r *Runtime) Status(context.Context, *runtimeapi.StatusRequest) (*runtimeapi.StatusResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	network := &runtimeapi.RuntimeCondition{Type: runtimeapi.NetworkReady, Status: r.networkUp || r.podCIDR != ""}
	if !network.Status {
		network.Reason, network.Message = "NetworkPluginNotReady", "no pod range yet"
	}
	return &runtimeapi.StatusResponse{Status: &runtimeapi.RuntimeStatus{Conditions: []*runtimeapi.RuntimeCondition{
		{Type: runtimeapi.RuntimeReady, Status: true}, network}}}, nil
}

// UpdateRuntimeConfig implements cri.Runtime.
func (r *Runtime) UpdateRuntimeConfig(_ context.Context, req *runtimeapi.UpdateRuntimeConfigRequest) (*runtimeapi.UpdateRuntimeConfigResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.podCIDR = req.GetRuntimeConfig().GetNetworkConfig().GetPodCidr()
	return &runtimeapi.UpdateRuntimeConfigResponse{}, nil
}

// ExecSync implements cri.Runtime.
func (r *Runtime) ExecSync(_ context.Context, req *runtimeapi.ExecSyncRequest) (*runtimeapi.ExecSyncResponse, error) {
	r.mu.Lock()
	f := r.exec
	r.noteLocked("exec %v", req.Cmd)
	r.mu.Unlock()
	if f == nil {
		return &runtimeapi.ExecSyncResponse{}, nil
	}
	out, code := f(req.ContainerId, req.Cmd)
	return &runtimeapi.ExecSyncResponse{Stdout: []byte(out), ExitCode: code}, nil
}

func notFound(kind, id string) error {
	return status.Errorf(codes.NotFound, "%s %q not found", kind, id)
}

func matches(labels, selector map[string]string) bool {
	for k, v := range selector {
		if labels[k] != v {
			return false
		}
	}
	return true
}

func clone(m map[string]string) map[string]string { return maps.Clone(m) }

// ListPodSandboxStats implements cri.Runtime: pods use nothing.
func (r *Runtime) ListPodSandboxStats(context.Context, *runtimeapi.ListPodSandboxStatsRequest) (*runtimeapi.ListPodSandboxStatsResponse, error) {
	return &runtimeapi.ListPodSandboxStatsResponse{}, nil
}
