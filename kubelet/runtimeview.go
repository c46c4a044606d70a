package kubelet

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	kubelettypes "k8s.io/kubelet/pkg/types"
)

// podRuntime is what the runtime has of one pod at one moment.
type podRuntime struct {
	sandboxes  []*sandbox   // newest first
	containers []*container // newest first
}

type sandbox struct {
	id      string
	attempt uint32
	ready   bool
	network runtimeapi.NamespaceMode // valid if known
	known   bool                     // the runtime told the network mode
	created int64
	ips     []string
}

type container struct {
	id, name, sandboxID                  string
	hash                                 string
	state                                runtimeapi.ContainerState
	created, started, finished           time.Time
	exitCode                             int32
	reason, message                      string
	restarts                             int32
	image, imageRef, imageID             string
	logPath                              string
	user                                 *runtimeapi.ContainerUser
	resources                            *runtimeapi.LinuxContainerResources // nil if the runtime does not tell
	messagePath, messagePolicy, hostPath string                              // of the termination message
}

func (c *container) running() bool { return c.state == runtimeapi.ContainerState_CONTAINER_RUNNING }
func (c *container) exited() bool  { return c.state == runtimeapi.ContainerState_CONTAINER_EXITED }
func (c *container) neverStarted() bool {
	return c.state == runtimeapi.ContainerState_CONTAINER_CREATED
}

// current is the newest sandbox, or nil.
func (p *podRuntime) current() *sandbox {
	if len(p.sandboxes) == 0 {
		return nil
	}
	return p.sandboxes[0]
}

// newest is the newest container of the name in any sandbox, or nil.
func (p *podRuntime) newest(name string) *container {
	for _, c := range p.containers {
		if c.name == name {
			return c
		}
	}
	return nil
}

// newestIn is the newest container of the name in one sandbox, or nil.
func (p *podRuntime) newestIn(sandboxID, name string) *container {
	for _, c := range p.containers {
		if c.name == name && c.sandboxID == sandboxID {
			return c
		}
	}
	return nil
}

func (p *podRuntime) anyRunning() bool {
	return slices.ContainsFunc(p.containers, func(c *container) bool { return c.running() })
}

// ips are the pod's addresses, none without a ready sandbox.
func (p *podRuntime) ips() []string {
	if s := p.current(); s != nil && s.ready {
		return s.ips
	}
	return nil
}

// observe asks the runtime about one pod. Exited containers do not change any
// more: those of prev are reused without a question.
func (k *Kubelet) observe(ctx context.Context, uid types.UID, prev *podRuntime) (*podRuntime, error) {
	selector := map[string]string{kubelettypes.KubernetesPodUIDLabel: string(uid)}
	boxes, err := k.cfg.Runtime.ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{
		Filter: &runtimeapi.PodSandboxFilter{LabelSelector: selector}})
	if err != nil {
		return nil, err
	}
	list, err := k.cfg.Runtime.ListContainers(ctx, &runtimeapi.ListContainersRequest{
		Filter: &runtimeapi.ContainerFilter{LabelSelector: selector}})
	if err != nil {
		return nil, err
	}
	p := &podRuntime{}
	slices.SortFunc(boxes.Items, func(a, b *runtimeapi.PodSandbox) int { return cmp.Compare(b.CreatedAt, a.CreatedAt) })
	for i, b := range boxes.Items {
		s := &sandbox{id: b.Id, created: b.CreatedAt, attempt: b.GetMetadata().GetAttempt(),
			ready: b.State == runtimeapi.PodSandboxState_SANDBOX_READY}
		if i == 0 || s.ready {
			if err := k.inspectSandbox(ctx, s); isNotFound(err) {
				continue
			} else if err != nil {
				return nil, err
			}
		}
		p.sandboxes = append(p.sandboxes, s)
	}
	for _, c := range list.Containers {
		if old := prev.byID(c.Id); old != nil && old.exited() {
			p.containers = append(p.containers, old)
			continue
		}
		r, err := k.cfg.Runtime.ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: c.Id})
		if isNotFound(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		p.containers = append(p.containers, k.view(c, r.GetStatus()))
	}
	slices.SortStableFunc(p.containers, func(a, b *container) int {
		return cmp.Or(b.created.Compare(a.created), cmp.Compare(b.restarts, a.restarts))
	})
	return p, nil
}

func (p *podRuntime) byID(id string) *container {
	if p == nil {
		return nil
	}
	for _, c := range p.containers {
		if c.id == id {
			return c
		}
	}
	return nil
}

func (k *Kubelet) inspectSandbox(ctx context.Context, s *sandbox) error {
	r, err := k.cfg.Runtime.PodSandboxStatus(ctx, &runtimeapi.PodSandboxStatusRequest{PodSandboxId: s.id})
	if err != nil {
		return err
	}
	st := r.GetStatus()
	s.ready = st.GetState() == runtimeapi.PodSandboxState_SANDBOX_READY
	if o := st.GetLinux().GetNamespaces().GetOptions(); o != nil {
		s.network, s.known = o.GetNetwork(), true
	}
	s.ips = nil
	if ip := st.GetNetwork().GetIp(); ip != "" {
		s.ips = append(s.ips, ip)
		for _, a := range st.GetNetwork().GetAdditionalIps() {
			s.ips = append(s.ips, a.GetIp())
		}
	}
	return nil
}

// view turns the runtime's answer into a container, reading the termination
// message of an exited one.
func (k *Kubelet) view(c *runtimeapi.Container, st *runtimeapi.ContainerStatus) *container {
	v := &container{
		id: c.Id, sandboxID: c.PodSandboxId, state: st.GetState(),
		name:     st.GetLabels()[kubelettypes.KubernetesContainerNameLabel],
		hash:     st.GetAnnotations()[annotationHash],
		created:  timeOf(st.GetCreatedAt()),
		started:  timeOf(st.GetStartedAt()),
		finished: timeOf(st.GetFinishedAt()),
		exitCode: st.GetExitCode(), reason: st.GetReason(), message: st.GetMessage(),
		image: st.GetImage().GetImage(), imageRef: st.GetImageRef(), imageID: st.GetImageId(),
		logPath: st.GetLogPath(), user: st.GetUser(), resources: st.GetResources().GetLinux(),
		messagePath:   st.GetAnnotations()[annotationMessagePath],
		messagePolicy: st.GetAnnotations()[annotationMessagePolicy],
	}
	if u := st.GetImage().GetUserSpecifiedImage(); u != "" {
		v.image = u
	}
	if v.name == "" {
		v.name = st.GetMetadata().GetName()
	}
	if n, err := strconv.ParseInt(st.GetAnnotations()[annotationRestartCount], 10, 32); err == nil {
		v.restarts = int32(n)
	} else {
		v.restarts = int32(st.GetMetadata().GetAttempt())
	}
	for _, m := range st.GetMounts() {
		if m.GetContainerPath() == v.messagePath && v.messagePath != "" {
			v.hostPath = m.GetHostPath()
		}
	}
	if v.exited() {
		v.message = terminationMessage(v)
	}
	return v
}

func timeOf(nanos int64) time.Time {
	if nanos <= 0 {
		return time.Time{}
	}
	return time.Unix(0, nanos)
}

func isNotFound(err error) bool { return err != nil && status.Code(err) == codes.NotFound }

// rpcMessage is an error of the runtime without gRPC's dressing.
func rpcMessage(err error) string {
	if s, ok := status.FromError(err); ok {
		return s.Message()
	}
	return strings.TrimPrefix(err.Error(), "rpc error: ")
}
