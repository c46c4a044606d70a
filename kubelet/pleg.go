package kubelet

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	kubelettypes "k8s.io/kubelet/pkg/types"

	"github.com/periplus/periplus/base"
)

// runEvents is the pod life cycle event generator: it wakes workers when the
// runtime reports something. The stream says what changed only as a hint; the
// worker asks for the truth. After a start or a break everything is listed once.
func (k *Kubelet) runEvents(ctx context.Context) error {
	const first, most = 100 * time.Millisecond, 5 * time.Second
	delay := first
	for {
		err := k.cfg.Runtime.Events(ctx, func() {
			delay = first
			k.tasks.Go(func() { k.relist(ctx) })
		}, k.runtimeEvent)
		if ctx.Err() != nil {
			return nil
		}
		if status.Code(err) == codes.Unimplemented {
			return k.relistEverySecond(ctx)
		}
		k.log.Warn("the runtime's event stream broke", base.KeyError, err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(delay):
			delay = min(2*delay, most)
		}
	}
}

// relistEverySecond stands in for the events of runtimes that have none.
func (k *Kubelet) relistEverySecond(ctx context.Context) error {
	k.log.Warn("the runtime has no events, its pods are listed every second")
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		k.relist(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

func (k *Kubelet) runtimeEvent(e *runtimeapi.ContainerEventResponse) {
	if uid := e.GetPodSandboxStatus().GetMetadata().GetUid(); uid != "" {
		k.wake(types.UID(uid))
		return
	}
	for _, s := range e.GetContainersStatuses() {
		if uid := s.GetLabels()[kubelettypes.KubernetesPodUIDLabel]; uid != "" {
			k.wake(types.UID(uid))
			return
		}
	}
	// The event does not tell the pod (a removal): whoever has the container looks.
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, w := range k.workers {
		if w.owns(e.GetContainerId()) {
			w.wake()
		}
	}
}

// relist wakes all pods that exist on either side and ends those that only the
// runtime knows.
func (k *Kubelet) relist(ctx context.Context) {
	seen, err := k.runtimePods(ctx)
	if err != nil {
		k.log.Error("cannot list the runtime's pods", base.KeyError, err)
		return
	}
	k.mu.Lock()
	k.seen = seen
	k.mu.Unlock()
	k.wakeAll()
	k.reapOrphans(ctx)
}

func (k *Kubelet) runtimePods(ctx context.Context) (map[types.UID]bool, error) {
	seen := map[types.UID]bool{}
	note := func(labels map[string]string) {
		if uid := labels[kubelettypes.KubernetesPodUIDLabel]; uid != "" {
			seen[types.UID(uid)] = true
		}
	}
	boxes, err := k.cfg.Runtime.ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{})
	if err != nil {
		return nil, err
	}
	for _, b := range boxes.Items {
		note(b.Labels)
	}
	list, err := k.cfg.Runtime.ListContainers(ctx, &runtimeapi.ListContainersRequest{})
	if err != nil {
		return nil, err
	}
	for _, c := range list.Containers {
		note(c.Labels)
	}
	return seen, nil
}
