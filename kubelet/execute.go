package kubelet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/periplus/periplus/base/metric"
	"github.com/periplus/periplus/volume"
)

// execution carries what the steps of one execute share.
type execution struct {
	w      *worker
	pod    *corev1.Pod
	rt     *podRuntime
	box    *sandbox // set once there is one
	config *runtimeapi.PodSandboxConfig
	again  time.Duration                    // when to come back for a back-off
	images map[string]*runtimeapi.ImageSpec // volumes that are images and present, by name
}

// execute does what computeActions found. Volumes are mounted while the sandbox
// is created; containers start when both are done, one after the other.
func (w *worker) execute(ctx context.Context, pod *corev1.Pod, a actions) (again time.Duration, err error) {
	e := &execution{w: w, pod: pod, rt: w.state.runtime, box: w.state.runtime.current()}
	if err := e.stopOld(ctx, a); err != nil {
		return 0, err
	}
	if len(a.stop) > 0 {
		// What was stopped counts as exited from here on: it may have to back off.
		if e.rt, err = w.k.observe(ctx, w.uid, e.rt); err != nil {
			return 0, err
		}
		w.state.runtime = e.rt
	}
	if err := e.directories(); err != nil {
		return 0, err
	}
	if a.createSandbox || a.starts() {
		if err := w.k.particular.claims.Prepare(ctx, pod); err != nil {
			if ctx.Err() == nil {
				w.k.cfg.Events.Eventf(pod, corev1.EventTypeWarning, "FailedPrepareDynamicResources", "Failed to prepare dynamic resources: %v", err)
			}
			return 0, err
		}
	}
	if len(a.resize) > 0 {
		if err := e.resizeAll(ctx, a.resize); err != nil {
			return 0, err
		}
	}
	var (
		wg       sync.WaitGroup
		mountErr error
	)
	if w.state.mounts == nil || a.starts() {
		wg.Go(func() { mountErr = e.mount(ctx) })
	}
	boxErr := e.sandbox(ctx, a)
	wg.Wait()
	if err := errors.Join(boxErr, mountErr); err != nil {
		return 0, err
	}
	return e.again, e.startAll(ctx, a)
}

func (a *actions) starts() bool {
	return a.createSandbox || len(a.startInit)+len(a.start)+len(a.startEphemeral) > 0
}

func (e *execution) comeBack(d time.Duration) {
	if d > 0 && (e.again == 0 || d < e.again) {
		e.again = d
	}
}

// stopOld stops containers that have to be replaced and sandboxes that are no
// longer of use.
func (e *execution) stopOld(ctx context.Context, a actions) error {
	k := e.w.k
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		errs []error
	)
	for _, o := range a.stop {
		wg.Go(func() {
			if err := k.stopContainer(ctx, e.pod, stop{container: o.container, message: o.message, reason: o.reason}); err != nil {
				mu.Lock()
				errs = append(errs, err)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if a.createSandbox {
		if len(e.rt.sandboxes) > 0 {
			k.cfg.Events.Event(e.pod, corev1.EventTypeNormal, "SandboxChanged", "Pod sandbox changed, it will be killed and re-created.")
		}
		for _, b := range e.rt.sandboxes {
			if _, err := k.cfg.Runtime.StopPodSandbox(ctx, &runtimeapi.StopPodSandboxRequest{PodSandboxId: b.id}); err != nil && !isNotFound(err) {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}

func (e *execution) directories() error {
	if err := os.MkdirAll(e.w.k.podDir(e.pod), 0o750); err != nil {
		e.w.k.cfg.Events.Eventf(e.pod, corev1.EventTypeWarning, "FailedToMakePodDataDirectories", "error making pod data directories: %v", err)
		return err
	}
	return os.MkdirAll(e.w.k.podLogDir(e.pod), 0o755)
}

func (e *execution) mount(ctx context.Context) error {
	w := e.w
	first := w.state.mounts == nil
	if w.k.cfg.Volumes == nil {
		if len(e.pod.Spec.Volumes) > 0 {
			return errors.New("this kubelet has no volumes")
		}
		w.state.mounts = map[string]volume.Mounted{}
		return nil
	}
	began := time.Now()
	m, err := w.k.cfg.Volumes.Mount(ctx, e.pod)
	if err != nil {
		if ctx.Err() == nil {
			for _, me := range volume.MountErrors(err) {
				w.k.cfg.Events.Event(e.pod, corev1.EventTypeWarning, "FailedMount", me.Error())
			}
		}
		return err
	}
	w.state.mounts = m
	if first && len(m) > 0 {
		w.step(e.pod, "volumes mounted", began, nil)
	}
	return nil
}

// sandbox makes sure that there is a sandbox and describes it in e.box.
func (e *execution) sandbox(ctx context.Context, a actions) error {
	w := e.w
	var err error
	if e.config, err = e.sandboxConfig(a.attempt, a.createSandbox); err != nil {
		w.k.cfg.Events.Eventf(e.pod, corev1.EventTypeWarning, "FailedToCreatePodContainer", "unable to ensure pod container exists: %v", err)
		return err
	}
	if !a.createSandbox {
		return nil
	}
	began := time.Now()
	handler, err := e.runtimeHandler(ctx)
	if err == nil {
		err = hostUsersOnly(e.pod)
	}
	var resp *runtimeapi.RunPodSandboxResponse
	if err == nil {
		run := time.Now()
		resp, err = w.k.cfg.Runtime.RunPodSandbox(ctx, &runtimeapi.RunPodSandboxRequest{Config: e.config, RuntimeHandler: handler})
		w.k.metrics.sandbox.Of(metric.Labels{handler}).Observe(time.Since(run).Seconds())
	}
	if err != nil {
		w.k.metrics.sandboxErrors.Of(metric.Labels{handler}).Inc()
		if ctx.Err() == nil {
			w.k.cfg.Events.Eventf(e.pod, corev1.EventTypeWarning, "FailedCreatePodSandBox", "Failed to create pod sandbox: %v", err)
		}
		return fmt.Errorf("failed to create pod sandbox: %w", err)
	}
	w.k.metrics.startedPods.Of(metric.Labels{}).Inc()
	e.box = &sandbox{id: resp.PodSandboxId, attempt: a.attempt}
	if err := w.k.inspectSandbox(ctx, e.box); err != nil {
		return err
	}
	w.mu.Lock()
	w.ips = e.box.ips
	w.mu.Unlock()
	w.step(e.pod, "sandbox created", began, map[string]string{"ip": firstOf(e.box.ips)})
	return nil
}

// runtimeHandler looks the pod's runtime class up.
func (e *execution) runtimeHandler(ctx context.Context) (string, error) {
	name := e.pod.Spec.RuntimeClassName
	if name == nil || *name == "" {
		return "", nil
	}
	class, err := e.w.k.cfg.Client.NodeV1().RuntimeClasses().Get(ctx, *name, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("failed to get sandbox runtime: %w", err)
	}
	return class.Handler, nil
}

func firstOf(s []string) string {
	if len(s) == 0 {
		return ""
	}
	return s[0]
}
