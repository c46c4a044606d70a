package scheduler

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
)

// noteLimit is the longest note that the API accepts in an event.
const noteLimit = 1024

func eventScheme() *runtime.Scheme { return scheme.Scheme }

// shortNote cuts a message to what fits into an event.
func shortNote(s string) string {
	if len(s) <= noteLimit {
		return s
	}
	return s[:noteLimit-4] + " ..."
}

type noEvents struct{}

var _ events.EventRecorder = noEvents{}

func (noEvents) Eventf(_, _ runtime.Object, _, _, _, _ string, _ ...any) {}
