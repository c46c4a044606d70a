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
type Kind string

// The three kinds of probes.
const (
	Startup   Kind = "Startup"
	Liveness  Kind = "Liveness"
	Readiness Kind = "Readiness"
)

// A Result is what is known about a container from a probe.
type Result int

// Unknown is the result before the first answer that counts. Until then a
// container counts as alive, but not as started nor ready.
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
	ContainerID string // the runtime's own ID, without "scheme://"
	Kind        Kind
	Result      Result
	Message     string // the probe's last output
	// GracePeriodSeconds is the probe's own terminationGracePeriodSeconds: how long
	// the container has to end after a failed liveness or startup probe. Nil: the pod's.
	GracePeriodSeconds *int64
}

// Execer runs a command in a container; cri.Runtime is one.
type Execer interface {
	ExecSync(context.Context, *runtimeapi.ExecSyncRequest) (*runtimeapi.ExecSyncResponse, error)
}

// Config of a Prober.
type Config struct {
	Exec Execer
	// Count, if not nil, is told of every probe: successful, failed, or unknown if it
	// could not be carried out.
	Count func(pod *corev1.Pod, container string, kind Kind, result string)
	// Changed, if not nil, is called after a result has changed, from the prober's
	// goroutines, in order for one probe. It must not block for long.
	Changed func(Update)
	// Event, if not nil, records an event about a container: Warning, "Unhealthy",
	// `Readiness probe failed: HTTP probe failed with statuscode: 500`.
	Event func(pod *corev1.Pod, container, eventType, reason, message string)
	// Since is when the kubelet started. Containers that are older were found
	// running: their probes begin at a random moment of their period, so that not
	// everything is probed at once, and what pod.Status says about them (started,
	// ready) holds until a probe says otherwise. Zero means now.
	Since time.Time
	// Log defaults to slog.Default().
	Log *slog.Logger
}

// What the API server fills in; pods from files may lack it.
const (
	defaultPeriod           = 10 * time.Second
	defaultTimeout          = time.Second
	defaultFailureThreshold = 3
	defaultSuccessThreshold = 1
)

func period(s *corev1.Probe) time.Duration  { return seconds(s.PeriodSeconds, defaultPeriod) }
func timeout(s *corev1.Probe) time.Duration { return seconds(s.TimeoutSeconds, defaultTimeout) }

func seconds(n int32, fallback time.Duration) time.Duration {
	if n <= 0 {
		return fallback
	}
	return time.Duration(n) * time.Second
}

func threshold(s *corev1.Probe, r Result) int {
	n, fallback := s.SuccessThreshold, defaultSuccessThreshold
	if r == Failure {
		n, fallback = s.FailureThreshold, defaultFailureThreshold
	}
	if n <= 0 {
		return fallback
	}
	return int(n)
}
