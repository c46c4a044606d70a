package kubelet

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/periplus/periplus/kubelet/probe"
)

// results answers for probes by "<container>/<kind>": present and true, present and false, or unknown.
type results map[string]bool

func (r results) Result(id string, kind probe.Kind) (success, known bool) {
	success, known = r[id+"/"+string(kind)]
	return success, known
}

// TestComputeActions reads each case as: the pod's containers ("i" init, "s"
// sidecar, "a" app), what the runtime has ("name=state" with state run, created,
// unknown or an exit code), and the decision.
func TestComputeActions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, spec, policy, runtime string
		probes                      results
		want                        string
	}{
		{"new pod", "a:x a:y", "Always", "", nil, "sandbox 0; start x y"},
		{"new pod with init containers", "i:i a:x", "Always", "", nil, "sandbox 0; init i"},
		{"all runs", "a:x a:y", "Always", "box x=run y=run", nil, "nothing"},
		{"one to go", "a:x a:y", "Always", "box x=run", nil, "start y"},
		{"exited, Always", "a:x", "Always", "box x=0", nil, "start x"},
		{"exited, OnFailure, success", "a:x a:y", "OnFailure", "box x=0 y=run", nil, "nothing"},
		{"exited, OnFailure, failure", "a:x", "OnFailure", "box x=1", nil, "start x"},
		{"exited, Never", "a:x a:y", "Never", "box x=1 y=run", nil, "nothing"},
		{"created but not started", "a:x", "Never", "box x=created", nil, "start x"},
		{"unknown", "a:x", "Always", "box x=unknown", nil, "stop x; start x"},
		{"init runs", "i:i a:x", "Always", "box i=run", nil, "nothing"},
		{"init done", "i:i i:j a:x", "Always", "box i=0", nil, "init j"},
		{"all init done", "i:i i:j a:x", "Always", "box i=0 j=0", nil, "start x"},
		{"init failed, Always", "i:i a:x", "Always", "box i=1", nil, "init i"},
		{"init failed, Never", "i:i a:x", "Never", "box i=1", nil, "nothing"},
		{"sidecar runs, next", "s:s i:i a:x", "Always", "box s=run", nil, "init i"},
		{"sidecar with startup probe pending", "s:s+startup a:x", "Always", "box s=run", nil, "nothing"},
		{"sidecar started", "s:s+startup a:x", "Always", "box s=run", results{"s/Startup": true}, "start x"},
		{"sidecar failed to start", "s:s+startup a:x", "Always", "box s=run", results{"s/Startup": false}, "stop s; init s"},
		{"sidecar died while init runs", "s:s i:i a:x", "Never", "box s=1 i=run", nil, "init s"},
		{"sidecar died, app runs", "s:s a:x", "Never", "box s=1 x=run", nil, "init s"},
		{"liveness failed, Always", "a:x+liveness", "Always", "box x=run", results{"x/Liveness": false}, "stop x; start x"},
		{"liveness failed, Never", "a:x+liveness", "Never", "box x=run", results{"x/Liveness": false}, "stop x"},
		{"definition changed", "a:x", "Never", "box x=changed", nil, "stop x; start x"},
		{"sandbox lost", "a:x", "Always", "dead x=137", nil, "sandbox 1; start x"},
		{"sandbox lost, init again", "i:i a:x", "Always", "dead i=0 x=137", nil, "sandbox 1; init i"},
		{"sandbox lost, Never", "a:x", "Never", "dead x=137", nil, "nothing"},
		{"sandbox lost, one was done", "a:x a:y", "OnFailure", "dead x=0 y=137", nil, "sandbox 1; start y"},
		{"sandbox lost, all done", "a:x", "OnFailure", "dead x=0", nil, "nothing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			pod := specOf(c.spec, c.policy)
			got := render(pod, computeActions(pod, runtimeOf(pod, c.runtime), c.probes))
			if got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func specOf(s, policy string) *corev1.Pod {
	pod := &corev1.Pod{}
	pod.Spec.RestartPolicy = corev1.RestartPolicy(policy)
	for _, f := range strings.Fields(s) {
		kind, name, _ := strings.Cut(f, ":")
		name, probes, _ := strings.Cut(name, "+")
		c := corev1.Container{Name: name, Image: "image"}
		switch probes {
		case "startup":
			c.StartupProbe = &corev1.Probe{}
		case "liveness":
			c.LivenessProbe = &corev1.Probe{}
		}
		if kind == "s" {
			always := corev1.ContainerRestartPolicyAlways
			c.RestartPolicy = &always
		}
		if kind == "a" {
			pod.Spec.Containers = append(pod.Spec.Containers, c)
		} else {
			pod.Spec.InitContainers = append(pod.Spec.InitContainers, c)
		}
	}
	return pod
}

func runtimeOf(pod *corev1.Pod, s string) *podRuntime {
	rt := &podRuntime{}
	for _, f := range strings.Fields(s) {
		name, state, ok := strings.Cut(f, "=")
		if !ok {
			rt.sandboxes = []*sandbox{{id: "box", ready: name == "box", ips: []string{"10.42.0.2"}}}
			continue
		}
		c := &container{id: name, name: name, sandboxID: "box", hash: containerHash(findContainer(pod, name)),
			state: runtimeapi.ContainerState_CONTAINER_RUNNING, created: time.Unix(1, 0)}
		switch state {
		case "run":
		case "changed":
			c.hash = "other"
		case "created":
			c.state = runtimeapi.ContainerState_CONTAINER_CREATED
		case "unknown":
			c.state = runtimeapi.ContainerState_CONTAINER_UNKNOWN
		default:
			c.state = runtimeapi.ContainerState_CONTAINER_EXITED
			if _, err := fmt.Sscan(state, &c.exitCode); err != nil {
				panic(err)
			}
		}
		rt.containers = append(rt.containers, c)
	}
	return rt
}

func render(pod *corev1.Pod, a actions) string {
	var out []string
	add := func(verb string, names []string) {
		if len(names) > 0 {
			out = append(out, verb+" "+strings.Join(names, " "))
		}
	}
	if a.createSandbox {
		out = append(out, fmt.Sprintf("sandbox %d", a.attempt))
	}
	var stop, init, start []string
	for _, o := range a.stop {
		stop = append(stop, o.container.name)
	}
	for _, i := range a.startInit {
		init = append(init, pod.Spec.InitContainers[i].Name)
	}
	for _, i := range a.start {
		start = append(start, pod.Spec.Containers[i].Name)
	}
	add("stop", stop)
	add("init", init)
	add("start", start)
	if len(out) == 0 {
		return "nothing"
	}
	return strings.Join(out, "; ")
}
