package kubelet

import (
	"context"
	"errors"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// terminate stops everything of a pod that was deleted, finished, or has to end,
// and takes back what it was given. It may be interrupted and called again.
func (w *worker) terminate(ctx context.Context, pod *corev1.Pod, removed bool) (again time.Duration, done bool) {
	s := &w.state
	began := time.Now()
	s.terminating = true
	w.k.probes.Terminating(pod)

	rt, err := w.k.observe(ctx, w.uid, s.runtime)
	if err != nil {
		return w.failed(pod, "cannot ask the runtime about a pod that ends", err), false
	}
	w.observed(pod, rt)
	if rt.anyRunning() {
		// Readiness may still change while the containers take their time.
		w.status.set(w.report(pod), w.k.cfg.StatusDelay)
	}
	grace := w.endGrace(pod, removed)
	err = w.k.killPod(ctx, pod, rt, &grace)
	if ctx.Err() != nil {
		return 0, false
	}
	if err == nil {
		rt, err = w.k.observe(ctx, w.uid, rt)
	}
	if err == nil && rt.anyRunning() {
		err = errors.New("containers run on although they were stopped")
	}
	if err != nil {
		w.k.cfg.Events.Eventf(pod, corev1.EventTypeWarning, "FailedKillPod", "error killing pod: %v", err)
		return w.failed(pod, "cannot stop a pod", err), false
	}
	w.observed(pod, rt)
	w.k.probes.Remove(w.uid)
	s.terminated = true
	w.status.set(w.report(pod), 0)

	if err := w.release(ctx); err != nil {
		s.terminated = false
		return w.failed(pod, "cannot release a pod's resources", err), false
	}
	w.setAdmitted(nil)
	w.tellEnd()
	w.k.roomFreed()
	w.step(pod, "stopped", began, nil)
	s.failures = 0
	return w.finish(ctx, pod, removed)
}

// endGrace is how many seconds the containers of a pod that ends have: the
// shortest of what the deletion, the cause and the spec say, and at least one. A
// pod that vanished from the API without a deletion was removed by force.
func (w *worker) endGrace(pod *corev1.Pod, removed bool) int64 {
	grace := graceOf(pod)
	if removed && pod.DeletionTimestamp == nil && !isStatic(pod) {
		grace = 1
	}
	if g := w.state.cause.grace; g != nil {
		grace = min(grace, *g)
	}
	return max(grace, 1)
}

// release gives back volumes and cgroup.
func (w *worker) release(ctx context.Context) error {
	if w.k.cfg.Volumes != nil {
		if err := w.k.cfg.Volumes.Unmount(ctx, w.uid); err != nil {
			return err
		}
	}
	w.state.mounts = nil
	if err := w.k.particular.claims.Unprepare(ctx, w.uid); err != nil {
		return err
	}
	w.k.particular.free(w.uid)
	if w.k.cfg.Cgroups != nil {
		return w.k.cfg.Cgroups.Remove(w.uid)
	}
	return nil
}

// finish follows a pod of which nothing runs any more until the API has forgotten it.
func (w *worker) finish(ctx context.Context, pod *corev1.Pod, removed bool) (again time.Duration, done bool) {
	s := &w.state
	if !removed && pod.DeletionTimestamp != nil && !s.deleted && !isStatic(pod) {
		w.status.set(w.report(pod), 0)
		if err := w.status.flush(ctx); err != nil {
			return w.failed(pod, "cannot report a pod's end", err), false
		}
		err := w.k.deletePod(ctx, pod)
		switch {
		case apierrors.IsNotFound(err), apierrors.IsConflict(err):
			removed = true
		case err != nil:
			return w.failed(pod, "cannot delete a pod from the API", err), false
		}
		s.deleted = true
	}
	if !removed {
		w.cleared(ctx, pod)
		return 0, false // it is kept: finished, or finalizers hold it
	}
	if err := w.k.removeAll(ctx, s.runtime); err != nil {
		return w.failed(pod, "cannot remove a pod's containers", err), false
	}
	os.RemoveAll(w.k.podDir(pod))
	os.RemoveAll(w.k.podLogDir(pod))
	w.k.restarts.forget(s.backOffKeys...)
	w.k.puller.Forget(string(w.uid))
	w.status.stop()
	return 0, true
}

// deletePod ends the graceful deletion of exactly this pod.
func (k *Kubelet) deletePod(ctx context.Context, pod *corev1.Pod) error {
	now, uid := int64(0), pod.UID
	return k.cfg.Client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: &now,
		Preconditions:      &metav1.Preconditions{UID: &uid},
	})
}

// removeAll removes stopped containers and sandboxes from the runtime.
func (k *Kubelet) removeAll(ctx context.Context, rt *podRuntime) error {
	if rt == nil {
		return nil
	}
	for _, c := range rt.containers {
		if err := k.removeContainer(ctx, c.id); err != nil {
			return err
		}
	}
	for _, b := range rt.sandboxes {
		if _, err := k.cfg.Runtime.RemovePodSandbox(ctx, &runtimeapi.RemovePodSandboxRequest{PodSandboxId: b.id}); err != nil && !isNotFound(err) {
			return err
		}
	}
	return nil
}

func (k *Kubelet) removeContainer(ctx context.Context, id string) error {
	_, err := k.cfg.Runtime.RemoveContainer(ctx, &runtimeapi.RemoveContainerRequest{ContainerId: id})
	if isNotFound(err) {
		return nil
	}
	return err
}
