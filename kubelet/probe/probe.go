package probe

import (
	"context"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// A Kind says what a probe asks.
type Kind int

// The three kinds of probes.
const (
	Startup Kind = iota
	Liveness
	Readiness
)

func (k Kind) String() string { return [...]string{"Startup", "Liveness", "Readiness"}[k] }

// A Result is what is known about a container from a probe.
type Result int

// Unknown is a startup probe's result before the first answer that counts;
// a liveness probe begins with Success, a readiness probe with Failure.
const (
	Unknown Result = iota
	Success
	Failure
)

func (r Result) String() string { return [...]string{"Unknown", "Success", "Failure"}[r] }

// An Update is a changed result.
type Update struct {
	PodUID      types.UID
	Namespace   string
	Pod         string
	Container   string
	ContainerID string // as given in Target.ContainerID
	Kind        Kind
	Result      Result
	Message     string // the probe's last output
	// GracePeriodSeconds is the probe's own terminationGracePeriodSeconds: how long
	// the container has to end after a failed liveness or startup probe. Nil: the pod's.
	GracePeriodSeconds *int64
}

// A Target is a running container.
type Target struct {
	Pod         *corev1.Pod // its specification; not modified
	PodIP       string      // where HTTP, TCP and gRPC probes without a host go
	Container   string
	ContainerID string    // the runtime's own ID, without "scheme://"
	StartedAt   time.Time // initialDelaySeconds counts from here
	// Adopted is set for a container that ran before the kubelet (re)started: its
	// probes begin at a random moment of their period, so that a restarted kubelet
	// does not probe everything at once, and a container that had started counts
	// as started (HasStarted), one that was ready stays so (WasReady).
	Adopted    bool
	HasStarted bool
	WasReady   bool
}

// Execer runs a command in a container; cri.Runtime is one.
type Execer interface {
	ExecSync(context.Context, *runtimeapi.ExecSyncRequest) (*runtimeapi.ExecSyncResponse, error)
}

// Config of a Prober.
type Config struct {
	Exec Execer
	// Changed is called after a result has changed, from the prober's goroutines,
	// in order for one probe. It must not block for long.
	Changed func(Update)
	// Event, if not nil, records an event about a container (corev1.EventTypeWarning,
	// "Unhealthy", `Readiness probe failed: HTTP probe failed with statuscode: 500`).
	Event func(pod *corev1.Pod, container, eventType, reason, message string)
	// Log defaults to slog.Default().
	Log *slog.Logger
}
