package kubelet

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/periplus/periplus/base"
)

// minimalGrace is what a container gets at least between the signal and its death, in seconds.
const minimalGrace = 2

// killPod stops a pod's containers and its sandboxes. App containers stop side
// by side; sidecars follow when those are gone, the last one first.
func (k *Kubelet) killPod(ctx context.Context, pod *corev1.Pod, rt *podRuntime, grace *int64) error {
	var (
		wg    sync.WaitGroup
		apps  sync.WaitGroup
		mu    sync.Mutex
		errs  []error
		start = time.Now()
	)
	note := func(err error) {
		if err != nil {
			mu.Lock()
			errs = append(errs, err)
			mu.Unlock()
		}
	}
	sidecars := map[string]*container{}
	for _, c := range rt.containers {
		if c.exited() {
			continue
		}
		if spec := findContainer(pod, c.name); spec != nil && isSidecar(spec) && c.running() && sidecars[c.name] == nil {
			sidecars[c.name] = c
			continue
		}
		apps.Add(1)
		wg.Go(func() {
			defer apps.Done()
			note(k.stopContainer(ctx, pod, stop{container: c, override: grace}))
		})
	}
	// before is done when all that has to stop before the next sidecar has stopped.
	before := &apps
	for _, v := range slices.Backward(pod.Spec.InitContainers) {
		c := sidecars[v.Name]
		if c == nil {
			continue
		}
		wait := before
		self := &sync.WaitGroup{}
		self.Add(1)
		before = self
		wg.Go(func() {
			defer self.Done()
			note(k.stopContainer(ctx, pod, stop{container: c, override: grace, turn: wait, since: start}))
		})
	}
	wg.Wait()
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	for _, b := range rt.sandboxes {
		if !b.ready {
			continue
		}
		if _, err := k.cfg.Runtime.StopPodSandbox(ctx, &runtimeapi.StopPodSandboxRequest{PodSandboxId: b.id}); err != nil && !isNotFound(err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// stop is one container to be stopped.
type stop struct {
	container *container
	message   string
	reason    stopReason
	override  *int64          // grace in seconds instead of the pod's
	turn      *sync.WaitGroup // to wait for between preStop and the signal
	since     time.Time       // when the pod's grace began
}

// stopContainer runs the preStop hook within the grace and stops the container
// with what is left of it.
func (k *Kubelet) stopContainer(ctx context.Context, pod *corev1.Pod, o stop) error {
	c := o.container
	spec := findContainer(pod, c.name)
	grace := stopGrace(pod, spec, o.reason)
	if o.override != nil {
		grace = *o.override
	}
	message := o.message
	if message == "" {
		message = "Stopping container " + c.name
	}
	k.containerEvent(pod, c.name, corev1.EventTypeNormal, "Killing", message)

	began := time.Now()
	if c.running() && spec != nil && spec.Lifecycle != nil && spec.Lifecycle.PreStop != nil && grace > 0 && o.reason != stopUnknown {
		hook, cancel := context.WithTimeout(ctx, time.Duration(grace)*time.Second)
		err := k.runHook(hook, pod, spec, c.id, spec.Lifecycle.PreStop)
		timedOut := hook.Err() != nil && ctx.Err() == nil
		cancel()
		switch {
		case timedOut:
			k.log.Info("preStop hook did not end within the grace period", base.KeyPod, pod.Namespace+"/"+pod.Name, base.KeyContainer, c.name)
		case err != nil && ctx.Err() == nil:
			k.containerEvent(pod, c.name, corev1.EventTypeWarning, "FailedPreStopHook", "PreStopHook failed")
			k.log.Info("preStop hook failed", base.KeyPod, pod.Namespace+"/"+pod.Name, base.KeyContainer, c.name, base.KeyError, err)
		}
	}
	if o.turn != nil {
		waitFor(ctx, o.turn, time.Duration(grace)*time.Second)
	}
	grace -= int64(time.Since(began) / time.Second)
	_, err := k.cfg.Runtime.StopContainer(ctx, &runtimeapi.StopContainerRequest{ContainerId: c.id, Timeout: max(grace, minimalGrace)})
	if isNotFound(err) {
		return nil
	}
	return err
}

// waitFor waits for wg at most so long.
func waitFor(ctx context.Context, wg *sync.WaitGroup, most time.Duration) {
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }() // ends: everything in wg is bounded by its own grace
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// stopGrace is the grace in seconds: the deletion's, else the failed probe's, else the pod's.
func stopGrace(pod *corev1.Pod, spec *corev1.Container, reason stopReason) int64 {
	if pod.DeletionGracePeriodSeconds != nil {
		return *pod.DeletionGracePeriodSeconds
	}
	var probe *corev1.Probe
	if spec != nil {
		switch reason {
		case stopLiveness:
			probe = spec.LivenessProbe
		case stopStartup:
			probe = spec.StartupProbe
		}
	}
	if probe != nil && probe.TerminationGracePeriodSeconds != nil {
		return *probe.TerminationGracePeriodSeconds
	}
	return graceOf(pod)
}
