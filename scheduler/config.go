package scheduler

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"

	"github.com/periplus/periplus/journey"
)

// DefaultName is the name that a pod's schedulerName has by default.
const DefaultName = "default-scheduler"

// Config says what a Scheduler works with.
type Config struct {
	// Client writes bindings and pod status. Required.
	Client kubernetes.Interface
	// Informers deliver pods, nodes and what plug-ins look at. New adds handlers; Run starts them. Required.
	Informers informers.SharedInformerFactory
	// Recorder records Scheduled and FailedScheduling. nil records nothing.
	Recorder events.EventRecorder
	// Metrics count attempts; nil counts none.
	Metrics *Metrics
	// Journey receives the steps queued, scheduled and bound of each pod. nil forgets them.
	Journey journey.Recorder
	// Profiles say which pods are scheduled and how: scheduler/all has the default one. At least one.
	Profiles []Profile

	// InitialBackoff and MaxBackoff bound the wait after a failed attempt: 1 s and 10 s when zero.
	InitialBackoff, MaxBackoff time.Duration
	// Binders is how many bindings are written at the same time: 256 when zero.
	Binders int
	// Attempts is how many pods' last attempts are kept for Scheduler.Explain: 256 when zero.
	Attempts int
}

// A Profile is a scheduler name and the plug-ins that its pods get.
type Profile struct {
	SchedulerName string
	Plugins       []Use
	// PercentageOfNodesToScore ends the search for feasible nodes early: 0 adapts to
	// the size of the cluster (50 % - nodes/125, at least 5 % and at least 100 nodes).
	PercentageOfNodesToScore int
}

// Use is a plug-in in a profile.
type Use struct {
	New    Factory
	Weight int64 // of its scores; 1 when zero
}

func (c *Config) complete() error {
	if c.Client == nil || c.Informers == nil {
		return errors.New("scheduler: Client and Informers must be set")
	}
	if len(c.Profiles) == 0 {
		return errors.New("scheduler: at least one profile is needed")
	}
	seen := map[string]bool{}
	for i := range c.Profiles {
		p := &c.Profiles[i]
		if p.SchedulerName == "" {
			p.SchedulerName = DefaultName
		}
		if seen[p.SchedulerName] {
			return fmt.Errorf("scheduler: two profiles with the name %q", p.SchedulerName)
		}
		seen[p.SchedulerName] = true
		if p.PercentageOfNodesToScore < 0 || p.PercentageOfNodesToScore > 100 {
			return fmt.Errorf("scheduler: profile %q: PercentageOfNodesToScore is %d, allowed are 0 to 100", p.SchedulerName, p.PercentageOfNodesToScore)
		}
	}
	if c.Recorder == nil {
		c.Recorder = noEvents{}
	}
	if c.Journey == nil {
		c.Journey = journey.Discard
	}
	setDefault(&c.InitialBackoff, time.Second)
	setDefault(&c.MaxBackoff, 10*time.Second)
	setDefault(&c.Binders, 256)
	setDefault(&c.Attempts, 256)
	return nil
}

func setDefault[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}

// NewRecorder returns a recorder that writes events.k8s.io/v1 events of the named
// scheduler through client, and a function that ends it. It ends with ctx as well.
func NewRecorder(ctx context.Context, client kubernetes.Interface, name string) (events.EventRecorder, func(), error) {
	b := events.NewBroadcaster(&events.EventSinkImpl{Interface: client.EventsV1()})
	if err := b.StartRecordingToSinkWithContext(ctx); err != nil {
		return nil, nil, fmt.Errorf("scheduler: start recording events: %w", err)
	}
	return b.NewRecorder(eventScheme(), name), b.Shutdown, nil
}
