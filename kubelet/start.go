package kubelet

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/reference"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/periplus/periplus/base/metric"
	"github.com/periplus/periplus/kubelet/image"
)

// startAll starts the containers of a. An init container that does not start
// holds up everything behind it, an app container only itself.
func (e *execution) startAll(ctx context.Context, a actions) error {
	var errs []error
	for _, i := range a.startEphemeral {
		errs = append(errs, e.start(ctx, ephemeral(&e.pod.Spec.EphemeralContainers[i])))
	}
	for _, i := range a.startInit {
		c := &e.pod.Spec.InitContainers[i]
		if err := e.start(ctx, c); err != nil {
			return errors.Join(append(errs, err)...)
		}
		if e.w.state.waiting[c.Name].reason != "" && !isSidecar(c) {
			return errors.Join(errs...)
		}
	}
	for _, i := range a.start {
		errs = append(errs, e.start(ctx, &e.pod.Spec.Containers[i]))
	}
	return errors.Join(errs...)
}

// start brings one container up, or records in waiting why it does not run. The
// error is nil if the reason has its own time to come back (a back-off).
func (e *execution) start(ctx context.Context, c *corev1.Container) error {
	w := e.w
	if e.backsOff(c) {
		return nil
	}
	began := time.Now()
	before := w.state.waiting[c.Name].reason
	img, imgErr := w.k.puller.Ensure(ctx, image.Request{
		Pod: e.pod, Container: c, Sandbox: e.config,
		Event: func(kind, reason, message string) {
			if kind == corev1.EventTypeWarning && stands(before) {
				return
			}
			w.k.containerEvent(e.pod, c.Name, kind, reason, message)
		},
	})
	if imgErr != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if !imgErr.Told && !(stands(before) && before == imgErr.Reason) {
			w.k.containerEvent(e.pod, c.Name, corev1.EventTypeWarning, "Failed", "Error: "+imgErr.Reason)
		}
		w.state.waiting[c.Name] = waitReason{imgErr.Reason, imgErr.Message}
		e.comeBack(imgErr.Again)
		return nil
	}
	if imgErr := e.imageVolumes(ctx, c); imgErr != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		w.state.waiting[c.Name] = waitReason{imgErr.Reason, imgErr.Message}
		e.comeBack(imgErr.Again)
		return nil
	}
	step := "image present"
	if img.Pulled {
		step = "image pulled"
		w.k.node.Changed() // its list of images
	}
	w.step(e.pod, step, began, map[string]string{"container": c.Name, "image": c.Image})

	reason, err := e.run(ctx, c, img)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		w.state.waiting[c.Name] = waitReason{reason, rpcMessage(err)}
		return fmt.Errorf("container %s: %s: %w", c.Name, reason, err)
	}
	delete(w.state.waiting, c.Name)
	return nil
}

// stands says whether an image's fault lasts until somebody does something about
// it: it is told once, not at each look.
func stands(reason string) bool {
	return reason == image.ErrImageNeverPull || reason == image.InvalidImageName
}

// backsOff says whether a container that ended must wait before it runs again,
// and notes the attempt if not.
func (e *execution) backsOff(c *corev1.Container) bool {
	w := e.w
	last := e.rt.newest(c.Name)
	if last == nil || last.running() || last.neverStarted() {
		return false
	}
	ended := last.finished
	if ended.IsZero() {
		ended = last.created // it could not be started
	}
	key := string(w.uid) + "/" + c.Name + "/" + containerHash(c)
	delay, left := w.k.restarts.remaining(key, ended)
	if left <= 0 {
		w.k.restarts.Next(key, ended)
		w.noteBackOff(key)
		return false
	}
	reason := waitReason{"CrashLoopBackOff", fmt.Sprintf("back-off %s restarting failed container=%s pod=%s", delay, c.Name, podKey(e.pod))}
	if w.state.waiting[c.Name] != reason {
		w.state.waiting[c.Name] = reason
		w.k.containerEvent(e.pod, c.Name, corev1.EventTypeWarning, "BackOff",
			fmt.Sprintf("Back-off restarting failed container %s in pod %s", c.Name, podKey(e.pod)))
	}
	e.comeBack(left)
	return true
}

func (w *worker) noteBackOff(key string) {
	if slices.Contains(w.state.backOffKeys, key) {
		return
	}
	w.state.backOffKeys = append(w.state.backOffKeys, key)
}

// run creates and starts a container whose image is there. reason is the waiting
// reason that goes with err.
func (e *execution) run(ctx context.Context, c *corev1.Container, img image.Result) (reason string, err error) {
	k := e.w.k
	k.metrics.startedContainers.Of(metric.Labels{kindOf(e.pod, c.Name)}).Inc()
	fail := func(reason string, err error) (string, error) {
		k.metrics.containerErrors.Of(metric.Labels{kindOf(e.pod, c.Name), reason}).Inc()
		if ctx.Err() == nil {
			k.containerEvent(e.pod, c.Name, corev1.EventTypeWarning, "Failed", "Error: "+rpcMessage(err))
		}
		return reason, err
	}
	restarts := e.restarts(c.Name)
	if err := e.removeUnstarted(ctx, c.Name); err != nil {
		return fail("CreateContainerError", err)
	}
	config, err := e.containerConfig(ctx, c, img, restarts)
	if err != nil {
		return fail("CreateContainerConfigError", err)
	}
	began := time.Now()
	created, err := k.cfg.Runtime.CreateContainer(ctx, &runtimeapi.CreateContainerRequest{
		PodSandboxId: e.box.id, Config: config, SandboxConfig: e.config,
	})
	if err != nil {
		return fail("CreateContainerError", err)
	}
	e.w.step(e.pod, "container created", began, map[string]string{"container": c.Name})
	k.containerEvent(e.pod, c.Name, corev1.EventTypeNormal, "Created", "Container created")

	began = time.Now()
	if _, err := k.cfg.Runtime.StartContainer(ctx, &runtimeapi.StartContainerRequest{ContainerId: created.ContainerId}); err != nil {
		return fail("RunContainerError", err)
	}
	e.w.noteStart(e.pod, c.Name, created.ContainerId, began)
	k.containerEvent(e.pod, c.Name, corev1.EventTypeNormal, "Started", "Container started")

	if c.Lifecycle == nil || c.Lifecycle.PostStart == nil {
		return "", nil
	}
	if err := k.runHook(ctx, e.pod, c, created.ContainerId, c.Lifecycle.PostStart); err != nil {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		k.containerEvent(e.pod, c.Name, corev1.EventTypeWarning, "FailedPostStartHook", "PostStartHook failed")
		o := stop{container: &container{id: created.ContainerId, name: c.Name, state: runtimeapi.ContainerState_CONTAINER_RUNNING},
			message: "FailedPostStartHook", reason: stopPostStart}
		return "PostStartHookError", errors.Join(fmt.Errorf("PostStartHook failed: %w", err), k.stopContainer(ctx, e.pod, o))
	}
	return "", nil
}

// removeUnstarted removes a container that was created by a kubelet that did not
// live to start it.
func (e *execution) removeUnstarted(ctx context.Context, name string) error {
	last := e.rt.newest(name)
	if last == nil || !last.neverStarted() {
		return nil
	}
	if err := e.w.k.removeContainer(ctx, last.id); err != nil {
		return err
	}
	e.rt.containers = slices.DeleteFunc(e.rt.containers, func(c *container) bool { return c == last })
	return nil
}

// restarts is the restart count of the next container of the name.
func (e *execution) restarts(name string) int32 {
	if last := e.rt.newest(name); last != nil {
		if last.neverStarted() {
			return last.restarts // its successor takes its place
		}
		return last.restarts + 1
	}
	// The runtime forgot its predecessor, the API did not.
	st := e.w.status.last()
	if st == nil {
		return 0
	}
	for _, list := range [][]corev1.ContainerStatus{st.InitContainerStatuses, st.ContainerStatuses} {
		for i := range list {
			if s := &list[i]; s.Name == name && (s.LastTerminationState.Terminated != nil || s.State.Terminated != nil || s.ContainerID != "") {
				return max(s.RestartCount, 1)
			}
		}
	}
	return 0
}

// containerEvent records an event about one container of the pod.
func (k *Kubelet) containerEvent(pod *corev1.Pod, name, kind, reason, message string) {
	field := "spec.containers{" + name + "}"
	for i := range pod.Spec.InitContainers {
		if pod.Spec.InitContainers[i].Name == name {
			field = "spec.initContainers{" + name + "}"
		}
	}
	for i := range pod.Spec.EphemeralContainers {
		if pod.Spec.EphemeralContainers[i].Name == name {
			field = "spec.ephemeralContainers{" + name + "}"
		}
	}
	ref, err := reference.GetPartialReference(scheme.Scheme, pod, field)
	if err != nil {
		return
	}
	k.cfg.Events.Event(ref, kind, reason, message)
}

// containerLog is a container's log file relative to the pod's log directory.
func containerLog(name string, restarts int32) string {
	return filepath.Join(name, fmt.Sprintf("%d.log", restarts))
}
