package kubelet

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/periplus/periplus/kubelet/probe"
)

// actions is what is to be done to bring a pod from what the runtime has to what
// its spec says. Indexes point into the spec's lists.
type actions struct {
	createSandbox  bool
	attempt        uint32 // of the sandbox to create
	sandboxID      string // of the sandbox to use, if none is created
	stop           []stopOrder
	startInit      []int
	start          []int
	startEphemeral []int
	resize         []resizeOrder
}

// stopOrder is a container to be stopped and why.
type stopOrder struct {
	container *container
	message   string
	reason    stopReason
}

// stopReason decides whether preStop runs and which grace applies.
type stopReason int

const (
	stopPodKilled stopReason = iota
	stopChanged
	stopLiveness
	stopStartup
	stopUnknown
	stopPostStart
)

// probeResults answers what is asked about probes; a *probe.Prober does.
type probeResults interface {
	Result(containerID string, kind probe.Kind) (success, known bool)
}

// computeActions decides; it does nothing. The pod is neither being deleted nor finished.
//
//  1. no usable sandbox: a new one, and the first containers in it
//  2. ephemeral containers that never ran
//  3. init containers, one at a time up to the frontier; sidecars before the
//     frontier are kept running
//  4. app containers once all of those are through
func computeActions(pod *corev1.Pod, rt *podRuntime, probes probeResults) actions {
	var a actions
	a.createSandbox, a.attempt = sandboxNeeded(pod, rt)
	if a.createSandbox {
		a.computeFresh(pod, rt)
		return a
	}
	a.sandboxID = rt.current().id
	for i := range pod.Spec.EphemeralContainers {
		if rt.newest(pod.Spec.EphemeralContainers[i].Name) == nil {
			a.startEphemeral = append(a.startEphemeral, i)
		}
	}
	if a.computeInit(pod, rt, probes) {
		a.computeApp(pod, rt, probes)
	}
	return a
}

func sandboxNeeded(pod *corev1.Pod, rt *podRuntime) (bool, uint32) {
	s := rt.current()
	if s == nil {
		return true, 0
	}
	ready := 0
	for _, b := range rt.sandboxes {
		if b.ready {
			ready++
		}
	}
	switch {
	case !s.ready, ready > 1:
	case s.known && (s.network == runtimeapi.NamespaceMode_NODE) != isHostNetwork(pod):
	case !isHostNetwork(pod) && len(s.ips) == 0:
	default:
		return false, s.attempt
	}
	return true, s.attempt + 1
}

// computeFresh fills in what runs first in a new sandbox; if nothing has to run
// any more, none is made.
func (a *actions) computeFresh(pod *corev1.Pod, rt *podRuntime) {
	if a.attempt > 0 && len(rt.containers) > 0 && !mayRestart(pod) {
		a.createSandbox = false
		return
	}
	var start []int
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		if st := rt.newest(c.Name); st != nil && st.exited() && !shouldRestart(pod, c, st.exitCode) {
			continue
		}
		start = append(start, i)
	}
	if len(start) == 0 {
		a.createSandbox = false
		return
	}
	for _, c := range rt.containers {
		if c.running() {
			a.stop = append(a.stop, stopOrder{c, "Pod sandbox changed, it will be killed and re-created.", stopPodKilled})
		}
	}
	if len(pod.Spec.InitContainers) > 0 {
		a.startInit = []int{0}
		return
	}
	a.start = start
}

// computeInit reports whether all init containers are through.
func (a *actions) computeInit(pod *corev1.Pod, rt *podRuntime, probes probeResults) bool {
	init := pod.Spec.InitContainers
	if len(init) == 0 {
		return true
	}
	// The frontier is the last init container that ever ran in this sandbox. Once
	// an app container ran, all init containers are behind it.
	frontier := -1
	for i := range init {
		if rt.newestIn(a.sandboxID, init[i].Name) != nil {
			frontier = i
		}
	}
	for i := range pod.Spec.Containers {
		if rt.newestIn(a.sandboxID, pod.Spec.Containers[i].Name) != nil {
			frontier = len(init)
		}
	}
	for i := 0; i < min(frontier, len(init)); i++ {
		if isSidecar(&init[i]) {
			a.keepSidecar(pod, i, rt, probes)
		}
	}
	through := frontier >= len(init)
	if frontier >= 0 && !through {
		if !a.frontierPassed(pod, frontier, rt, probes) {
			return false
		}
	}
	if through || frontier == len(init)-1 {
		return true
	}
	a.startInit = append(a.startInit, frontier+1)
	return false
}

// frontierPassed reports whether the next init container may start.
func (a *actions) frontierPassed(pod *corev1.Pod, i int, rt *podRuntime, probes probeResults) bool {
	c := &pod.Spec.InitContainers[i]
	if isSidecar(c) {
		return a.keepSidecar(pod, i, rt, probes)
	}
	st := rt.newestIn(a.sandboxID, c.Name)
	switch {
	case st.running():
		return false
	case st.exited() && st.exitCode == 0:
		return true
	case st.exited():
		if shouldRestart(pod, c, st.exitCode) {
			a.startInit = append(a.startInit, i)
		}
	default: // created but never started, or unknown
		a.replaceUnknown(st)
		a.startInit = append(a.startInit, i)
	}
	return false
}

// keepSidecar restarts a sidecar that does not run as it should and reports
// whether it has started.
func (a *actions) keepSidecar(pod *corev1.Pod, i int, rt *podRuntime, probes probeResults) bool {
	c := &pod.Spec.InitContainers[i]
	st := rt.newestIn(a.sandboxID, c.Name)
	if st == nil || !st.running() {
		if st != nil && !st.exited() {
			a.replaceUnknown(st)
		}
		a.startInit = append(a.startInit, i)
		return false
	}
	if message, reason, bad := mustReplace(c, st, probes); bad {
		a.stop = append(a.stop, stopOrder{st, "Init container " + message, reason})
		a.startInit = append(a.startInit, i)
		return false
	}
	if a.resizeOrRestart(c, st) {
		a.stop = append(a.stop, stopOrder{st, "Init container " + c.Name + " resize requires restart", stopChanged})
		a.startInit = append(a.startInit, i)
		return false
	}
	return hasStarted(c, st, probes)
}

func (a *actions) computeApp(pod *corev1.Pod, rt *podRuntime, probes probeResults) {
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		st := rt.newest(c.Name)
		switch {
		case st == nil:
			a.start = append(a.start, i)
		case st.exited(), st.running() && st.sandboxID != a.sandboxID:
			if shouldRestart(pod, c, st.exitCode) {
				a.start = append(a.start, i)
			}
		case !st.running():
			a.replaceUnknown(st)
			a.start = append(a.start, i)
		default:
			message, reason, bad := mustReplace(c, st, probes)
			if !bad {
				if a.resizeOrRestart(c, st) {
					a.start = append(a.start, i)
					a.stop = append(a.stop, stopOrder{st, "Container " + c.Name + " resize requires restart", stopChanged})
				}
				continue
			}
			// A failing probe stops the container whatever the policy; only a change
			// of its definition starts it again regardless.
			if reason == stopChanged || restartsAfterStop(pod, c) {
				message += ", will be restarted"
				a.start = append(a.start, i)
			}
			a.stop = append(a.stop, stopOrder{st, "Container " + message, reason})
		}
	}
}

// restartsAfterStop: a container that we stop ourselves counts as failed (SIGKILL's code).
func restartsAfterStop(pod *corev1.Pod, c *corev1.Container) bool {
	return shouldRestart(pod, c, 137)
}

func (a *actions) replaceUnknown(st *container) {
	if st.state == runtimeapi.ContainerState_CONTAINER_UNKNOWN {
		a.stop = append(a.stop, stopOrder{st,
			fmt.Sprintf("Container is in %q state, try killing it before restart", "unknown"), stopUnknown})
	}
}

// mustReplace says why a running container has to go.
func mustReplace(c *corev1.Container, st *container, probes probeResults) (message string, reason stopReason, bad bool) {
	if st.hash != "" && st.hash != containerHash(c) {
		return c.Name + " definition changed", stopChanged, true
	}
	if c.LivenessProbe != nil {
		if ok, known := probes.Result(st.id, probe.Liveness); known && !ok {
			return c.Name + " failed liveness probe", stopLiveness, true
		}
	}
	if c.StartupProbe != nil {
		if ok, known := probes.Result(st.id, probe.Startup); known && !ok {
			return c.Name + " failed startup probe", stopStartup, true
		}
	}
	return "", 0, false
}

// hasStarted: a running container without a startup probe has.
func hasStarted(c *corev1.Container, st *container, probes probeResults) bool {
	if !st.running() {
		return false
	}
	if c.StartupProbe == nil {
		return true
	}
	ok, known := probes.Result(st.id, probe.Startup)
	return ok && known
}
