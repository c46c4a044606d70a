package kubelet_test

import (
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/periplus/periplus/journey"
)

// A journal keeps the steps of the rig's pods.
type journal struct {
	mu    sync.Mutex
	spans []journey.Span
}

// Record implements journey.Recorder.
func (j *journal) Record(s journey.Span) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.spans = append(j.spans, s)
}

// steps are those of a container, with its exit codes.
func (j *journal) steps(container string) []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	var out []string
	for _, s := range j.spans {
		if s.Attrs["container"] == container && !strings.HasPrefix(s.Step, "image") && s.Step != "container created" {
			out = append(out, strings.TrimSpace(s.Step+" "+s.Attrs["code"]))
		}
	}
	return out
}

// TestSteps: the journey tells of each init container and sidecar when it starts, ends
// or is ready, once each time.
func TestSteps(t *testing.T) {
	bubble(t, func(r *rig) {
		r.start()
		always := corev1.ContainerRestartPolicyAlways
		p := pod("web", app("web"))
		side := app("side")
		side.RestartPolicy = &always
		p.Spec.InitContainers = []corev1.Container{app("first"), side}
		r.create(p)
		r.runtime.Exit(r.runtime.Running("first"), 3)
		r.settle()
		r.runtime.Exit(r.runtime.Running("first"), 0)
		r.settle()
		if got := r.get("web"); condition(got, corev1.PodReady) != corev1.ConditionTrue {
			t.Fatalf("not ready: %+v", got.Status)
		}
		// Another kubelet takes over: it has nothing new to tell.
		r.stop()
		r.start()
		r.settle()
		for container, want := range map[string][]string{
			"first": {"init container started", "init container ended 3", "init container started", "init container ended 0"},
			"side":  {"sidecar started", "sidecar ready"},
			"web":   {"container started"},
		} {
			if got := r.journal.steps(container); !slices.Equal(got, want) {
				t.Errorf("steps of %s: %q, want %q", container, got, want)
			}
		}
		for _, s := range r.journal.spans {
			if s.Node != "n1" || s.Kind != "Pod" || s.End.Before(s.Start) {
				t.Errorf("step %+v", s)
			}
		}
	})
}
