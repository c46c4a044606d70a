package kubelet_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/periplus/periplus/kubelet/kubelettest"
)

func TestPodBecomesReadyInOneWrite(t *testing.T) {
	bubble(t, func(r *rig) {
		r.start()
		p := pod("web", app("web"))
		p.Spec.Containers[0].Env = []corev1.EnvVar{
			{Name: "IP", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"}}},
			{Name: "URL", Value: "http://$(IP)/$$(X)$(UNKNOWN)"},
		}
		r.create(p)

		got := r.get("web")
		if got.Status.Phase != corev1.PodRunning || condition(got, corev1.PodReady) != corev1.ConditionTrue ||
			condition(got, corev1.PodReadyToStartContainers) != corev1.ConditionTrue {
			t.Fatalf("status: %+v", got.Status)
		}
		if got.Status.PodIP == "" || got.Status.HostIP != "192.0.2.7" || got.Status.StartTime == nil {
			t.Errorf("podIP %q, hostIP %q, startTime %v", got.Status.PodIP, got.Status.HostIP, got.Status.StartTime)
		}
		if n := r.writes(); n != 1 {
			t.Errorf("%d status writes, want 1", n)
		}
		id := r.runtime.Running("web")
		if s := got.Status.ContainerStatuses[0]; s.ContainerID != "fake://"+id || !s.Ready || s.Started == nil || !*s.Started {
			t.Errorf("container status: %+v", s)
		}
		config := r.runtime.Config(id)
		want := "http://" + got.Status.PodIP + "/$(X)$(UNKNOWN)"
		if string(config.Envs[1].Value) != want {
			t.Errorf("URL=%s, want %s", config.Envs[1].Value, want)
		}
		if config.Linux.Resources.OomScoreAdj != 1000 || config.LogPath != "web/0.log" {
			t.Errorf("oom %d, log %s", config.Linux.Resources.OomScoreAdj, config.LogPath)
		}
		if dns := r.runtime.Sandbox("web").DnsConfig; dns.Searches[0] != "default.svc.cluster.local" || dns.Servers[0] != "10.43.0.10" {
			t.Errorf("dns: %v", dns)
		}
		texts := r.eventTexts()
		for _, e := range []string{
			`Normal Pulled Container image "web:1" already present on machine and can be accessed by the pod`,
			"Normal Created Container created", "Normal Started Container started",
		} {
			if !strings.Contains(texts, e) {
				t.Errorf("no event %q in\n%s", e, texts)
			}
		}
		// Idle costs nothing.
		before := len(r.client.Actions())
		r.advance(8 * time.Second)
		if after := len(r.client.Actions()); after != before {
			t.Errorf("%d requests while idle", after-before)
		}
	})
}

func TestCrashLoopBacksOff(t *testing.T) {
	bubble(t, func(r *rig) {
		var starts []time.Time
		r.runtime.OnStart = func(rt *kubelettest.Runtime, id string, _ *runtimeapi.ContainerConfig) {
			starts = append(starts, time.Now())
			rt.Exit(id, 1)
		}
		r.start()
		r.create(pod("crash", app("web")))
		got := r.get("crash")
		s := got.Status.ContainerStatuses[0]
		if s.State.Waiting == nil || s.State.Waiting.Reason != "CrashLoopBackOff" ||
			s.State.Waiting.Message != "back-off 10s restarting failed container=web pod=crash_default(uid-crash)" {
			t.Fatalf("state: %+v", s.State)
		}
		if s.LastTerminationState.Terminated == nil || s.LastTerminationState.Terminated.ExitCode != 1 || s.RestartCount != 1 {
			t.Errorf("last %+v, restarts %d", s.LastTerminationState, s.RestartCount)
		}
		if got.Status.Phase != corev1.PodRunning || condition(got, corev1.PodReady) != corev1.ConditionFalse {
			t.Errorf("phase %s", got.Status.Phase)
		}
		r.advance(200 * time.Second)
		var gaps []time.Duration
		for i := 1; i < len(starts); i++ {
			gaps = append(gaps, starts[i].Sub(starts[i-1]).Round(time.Second))
		}
		want := []time.Duration{0, 10 * time.Second, 20 * time.Second, 40 * time.Second, 80 * time.Second}
		if len(gaps) != len(want) {
			t.Fatalf("gaps %v, want %v", gaps, want)
		}
		for i := range want {
			if gaps[i] != want[i] {
				t.Fatalf("gaps %v, want %v", gaps, want)
			}
		}
		if all, _ := r.runtime.Containers(); all > 2 {
			t.Errorf("%d containers kept", all)
		}
		if texts := r.eventTexts(); !strings.Contains(texts, "Warning BackOff Back-off restarting failed container web in pod crash_default(uid-crash)") {
			t.Errorf("events:\n%s", texts)
		}
	})
}

func TestProgramThatCannotStart(t *testing.T) {
	bubble(t, func(r *rig) {
		r.runtime.CannotStart = true
		r.start()
		once, again := pod("once", app("web")), pod("again", app("web"))
		once.Spec.RestartPolicy = corev1.RestartPolicyNever
		r.create(once)
		r.create(again)
		r.advance(2 * time.Second)
		got := r.get("once")
		if s := got.Status.ContainerStatuses[0]; got.Status.Phase != corev1.PodFailed || s.State.Terminated == nil || s.State.Terminated.Reason != "StartError" {
			t.Errorf("never restarted: phase %s, state %+v", got.Status.Phase, s.State)
		}
		got = r.get("again")
		s := got.Status.ContainerStatuses[0]
		if got.Status.Phase != corev1.PodRunning || s.State.Waiting == nil || s.State.Waiting.Reason != "CrashLoopBackOff" || s.LastTerminationState.Terminated.ExitCode != 128 {
			t.Errorf("restarted: phase %s, state %+v", got.Status.Phase, s.State)
		}
	})
}

func TestPodRemovedByForceEndsSoon(t *testing.T) {
	bubble(t, func(r *rig) {
		r.start()
		r.create(pod("web", app("web")))
		if err := r.client.CoreV1().Pods("default").Delete(context.Background(), "web", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		r.settle()
		if !strings.Contains(r.calls(), "stop web 2, stop-sandbox web, remove web") {
			t.Errorf("calls: %s", r.calls())
		}
	})
}

func TestInitContainersAndSidecarsInOrder(t *testing.T) {
	bubble(t, func(r *rig) {
		r.start()
		always := corev1.ContainerRestartPolicyAlways
		p := pod("web", app("web"))
		side := app("side")
		side.RestartPolicy = &always
		p.Spec.InitContainers = []corev1.Container{app("first"), side, app("last")}
		r.create(p)
		if got := r.get("web"); got.Status.ContainerStatuses[0].State.Waiting.Reason != "PodInitializing" || got.Status.Phase != corev1.PodPending {
			t.Errorf("status: %+v", got.Status)
		}
		r.runtime.Exit(r.runtime.Running("first"), 1) // fails once
		r.settle()
		r.runtime.Exit(r.runtime.Running("first"), 0)
		r.settle()
		r.runtime.Exit(r.runtime.Running("last"), 0)
		r.settle()
		got := r.get("web")
		if condition(got, corev1.PodReady) != corev1.ConditionTrue || condition(got, corev1.PodInitialized) != corev1.ConditionTrue {
			t.Fatalf("not ready: %+v", got.Status)
		}
		var order []string
		for _, c := range r.runtime.Calls() {
			if name, ok := strings.CutPrefix(c, "start "); ok {
				order = append(order, name)
			}
		}
		if s := strings.Join(order, " "); s != "first first side last web" {
			t.Errorf("order: %s", s)
		}
		r.delete("web", 5)
		r.settle()
		calls := r.calls()
		if !strings.Contains(calls, "stop web 5") || strings.Index(calls, "stop web") > strings.Index(calls, "stop side") {
			t.Errorf("the sidecar has to stop last: %s", calls)
		}
	})
}

func TestDeletion(t *testing.T) {
	bubble(t, func(r *rig) {
		r.start()
		p := pod("web", app("web"))
		p.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"bye"}}}}
		r.create(p)
		r.delete("web", 30)
		r.settle()
		if _, err := r.client.CoreV1().Pods("default").Get(context.Background(), "web", metav1.GetOptions{}); err == nil {
			t.Fatal("the pod is still there")
		}
		if !strings.Contains(r.calls(), "exec [bye], stop web 30, stop-sandbox web, remove web, remove-sandbox web") {
			t.Errorf("calls: %s", r.calls())
		}
		if pods := r.kubelet.Pods(); len(pods) != 0 {
			t.Errorf("the kubelet still has %d pods", len(pods))
		}
	})
}

func TestGraceCanBeShortened(t *testing.T) {
	bubble(t, func(r *rig) {
		r.runtime.StopHangs = true
		r.start()
		r.create(pod("web", app("web")))
		began := time.Now()
		r.delete("web", 600)
		r.settle()
		r.delete("web", 3)
		r.advance(4 * time.Second)
		if all, _ := r.runtime.Containers(); all != 0 {
			t.Errorf("still there after %v: %s", time.Since(began), r.calls())
		}
	})
}

func TestRestartAdoptsContainers(t *testing.T) {
	bubble(t, func(r *rig) {
		r.start()
		r.create(pod("web", app("web")))
		r.create(pod("gone", app("web")))
		before, writes := len(r.runtime.Calls()), r.writes()
		r.stop()
		if err := r.client.CoreV1().Pods("default").Delete(context.Background(), "gone", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		r.start()
		r.settle()
		after := strings.Join(r.runtime.Calls()[before:], ", ")
		if after != "stop web 2, stop-sandbox gone, remove web, remove-sandbox gone" {
			t.Errorf("calls after the restart: %s", after)
		}
		if r.writes() != writes {
			t.Errorf("%d status writes after the restart", r.writes()-writes)
		}
		// It still reacts to what it adopted.
		r.runtime.Exit(r.runtime.Running("web"), 0)
		r.settle()
		if got := r.get("web"); got.Status.ContainerStatuses[0].RestartCount != 1 {
			t.Errorf("status: %+v", got.Status.ContainerStatuses[0])
		}
	})
}

func TestImagePullFailure(t *testing.T) {
	bubble(t, func(r *rig) {
		r.start()
		p := pod("web", app("web"))
		p.Spec.Containers[0].Image = "example.com/missing"
		r.create(p)
		w := r.get("web").Status.ContainerStatuses[0].State.Waiting
		if w == nil || w.Reason != "ErrImagePull" || !strings.Contains(w.Message, "not found") {
			t.Fatalf("waiting: %+v", w)
		}
		r.advance(2 * time.Second)
		w = r.get("web").Status.ContainerStatuses[0].State.Waiting
		if w == nil || w.Reason != "ImagePullBackOff" || !strings.HasPrefix(w.Message, `Back-off pulling image "example.com/missing": ErrImagePull: `) {
			t.Fatalf("waiting: %+v", w)
		}
		r.images.Publish("example.com/missing:latest")
		r.advance(10 * time.Second)
		if got := r.get("web"); condition(got, corev1.PodReady) != corev1.ConditionTrue {
			t.Fatalf("status: %+v", got.Status.ContainerStatuses)
		}
		if n, _ := r.images.Pulls(); n != 2 {
			t.Errorf("%d pulls", n)
		}
		texts := r.eventTexts()
		for _, e := range []string{`Normal Pulling Pulling image "example.com/missing"`, `Warning Failed Error: ErrImagePull`,
			`Normal BackOff Back-off pulling image "example.com/missing"`, `Warning Failed Error: ImagePullBackOff`,
			`Normal Pulled Successfully pulled image "example.com/missing" in `} {
			if !strings.Contains(texts, e) {
				t.Errorf("no event %q in\n%s", e, texts)
			}
		}
	})
}

func TestNeverPullAndInvalidName(t *testing.T) {
	bubble(t, func(r *rig) {
		r.start()
		p := pod("web", app("never"), app("invalid"), app("config"))
		p.Spec.Containers[0].Image, p.Spec.Containers[0].ImagePullPolicy = "other:1", corev1.PullNever
		p.Spec.Containers[1].Image = "Not A Name"
		p.Spec.Containers[2].EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "cm"}}}}
		r.create(p)
		var reasons []string
		for _, s := range r.get("web").Status.ContainerStatuses {
			reasons = append(reasons, s.State.Waiting.Reason)
		}
		if s := strings.Join(reasons, " "); s != "ErrImageNeverPull InvalidImageName CreateContainerConfigError" {
			t.Errorf("reasons: %s", s)
		}
		if m := r.get("web").Status.ContainerStatuses[2].State.Waiting.Message; m != `configmaps "cm" not found` && m != `configmap "cm" not found` {
			t.Errorf("message: %s", m)
		}
	})
}

func TestPodsThatEnd(t *testing.T) {
	for name, c := range map[string]struct {
		policy corev1.RestartPolicy
		code   int32
		phase  corev1.PodPhase
	}{
		"never succeeded":     {corev1.RestartPolicyNever, 0, corev1.PodSucceeded},
		"never failed":        {corev1.RestartPolicyNever, 3, corev1.PodFailed},
		"on failure, success": {corev1.RestartPolicyOnFailure, 0, corev1.PodSucceeded},
		"on failure, failure": {corev1.RestartPolicyOnFailure, 3, corev1.PodRunning},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				r.start()
				p := pod("job", app("job"))
				p.Spec.RestartPolicy = c.policy
				r.create(p)
				r.runtime.Exit(r.runtime.Running("job"), c.code)
				r.settle()
				got := r.get("job")
				if got.Status.Phase != c.phase {
					t.Fatalf("phase %s, want %s: %+v", got.Status.Phase, c.phase, got.Status.ContainerStatuses)
				}
				if c.phase == corev1.PodRunning {
					return
				}
				if s := got.Status.ContainerStatuses[0].State.Terminated; s == nil || s.ExitCode != c.code {
					t.Errorf("state: %+v", got.Status.ContainerStatuses[0].State)
				}
				if all, running := r.runtime.Containers(); all != 1 || running != 0 {
					t.Errorf("%d containers, %d running: the last one is kept for its log", all, running)
				}
			})
		})
	}
}

func TestActiveDeadline(t *testing.T) {
	bubble(t, func(r *rig) {
		r.start()
		p := pod("late", app("web"))
		seconds := int64(20)
		p.Spec.ActiveDeadlineSeconds = &seconds
		r.create(p)
		r.advance(19 * time.Second)
		if got := r.get("late"); got.Status.Phase != corev1.PodRunning {
			t.Fatalf("phase %s before the deadline", got.Status.Phase)
		}
		r.advance(2 * time.Second)
		if got := r.get("late"); got.Status.Phase != corev1.PodFailed || got.Status.Reason != "DeadlineExceeded" {
			t.Errorf("phase %s, reason %s", got.Status.Phase, got.Status.Reason)
		}
	})
}

func TestRefusedPod(t *testing.T) {
	bubble(t, func(r *rig) {
		r.start()
		big := pod("big", app("web"))
		big.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("3")}
		r.create(big)
		picky := pod("picky", app("web"))
		picky.Spec.NodeSelector = map[string]string{"disk": "fast"}
		r.create(picky)
		got := r.get("big")
		if got.Status.Phase != corev1.PodFailed || got.Status.Reason != "OutOfcpu" ||
			got.Status.Message != "Pod was rejected: Node didn't have enough resource: cpu, requested: 3000, used: 0, capacity: 2000" {
			t.Errorf("big: %s %s %q", got.Status.Phase, got.Status.Reason, got.Status.Message)
		}
		if got = r.get("picky"); got.Status.Reason != "NodeAffinity" {
			t.Errorf("picky: %s %s %q", got.Status.Phase, got.Status.Reason, got.Status.Message)
		}
		if r.runtime.Sandboxes() != 0 {
			t.Error("something ran")
		}
	})
}

func TestNodeBecomesReadyWithItsPodRange(t *testing.T) {
	bubble(t, func(r *rig) {
		r.runtime.SetNetwork(false)
		r.start()
		r.create(pod("web", app("web")))
		n, err := r.client.CoreV1().Nodes().Get(context.Background(), "n1", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if c := n.Status.Conditions[3]; c.Type != corev1.NodeReady || c.Reason != "KubeletNotReady" || !strings.Contains(c.Message, "NetworkPluginNotReady") {
			t.Errorf("condition: %+v", c)
		}
		if r.runtime.Sandboxes() != 0 {
			t.Error("a sandbox without network")
		}
		n.Spec.PodCIDR, n.Spec.PodCIDRs = "10.42.7.0/24", []string{"10.42.7.0/24"}
		if _, err := r.client.CoreV1().Nodes().Update(context.Background(), n, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		r.settle()
		n, _ = r.client.CoreV1().Nodes().Get(context.Background(), "n1", metav1.GetOptions{})
		if c := n.Status.Conditions[3]; c.Reason != "KubeletReady" || r.runtime.PodCIDR() != "10.42.7.0/24" {
			t.Errorf("condition %+v, range %q", c, r.runtime.PodCIDR())
		}
		if got := r.get("web"); condition(got, corev1.PodReady) != corev1.ConditionTrue {
			t.Errorf("pod: %+v", got.Status)
		}
		lease, err := r.client.CoordinationV1().Leases("kube-node-lease").Get(context.Background(), "n1", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		first := lease.Spec.RenewTime.Time
		r.advance(11 * time.Second)
		lease, _ = r.client.CoordinationV1().Leases("kube-node-lease").Get(context.Background(), "n1", metav1.GetOptions{})
		if d := lease.Spec.RenewTime.Sub(first); d < 9*time.Second || *lease.Spec.LeaseDurationSeconds != 40 {
			t.Errorf("renewed after %v, duration %d", d, *lease.Spec.LeaseDurationSeconds)
		}
	})
}

func TestReadinessProbeAndLiveness(t *testing.T) {
	bubble(t, func(r *rig) {
		var ready, alive atomic.Int32 // exit codes of the probes
		ready.Store(1)
		r.runtime.OnExec(func(_ string, cmd []string) (string, int32) {
			if cmd[0] == "ready" {
				return "", ready.Load()
			}
			return "", alive.Load()
		})
		r.start()
		p := pod("web", app("web"))
		exec := func(cmd string) *corev1.Probe {
			return &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{cmd}}},
				PeriodSeconds: 5, TimeoutSeconds: 1, FailureThreshold: 1, SuccessThreshold: 1}
		}
		p.Spec.Containers[0].ReadinessProbe, p.Spec.Containers[0].LivenessProbe = exec("ready"), exec("alive")
		r.create(p)
		if got := r.get("web"); got.Status.Phase != corev1.PodRunning || condition(got, corev1.PodReady) != corev1.ConditionFalse {
			t.Fatalf("status: %+v", got.Status)
		}
		ready.Store(0)
		r.advance(6 * time.Second)
		if got := r.get("web"); condition(got, corev1.PodReady) != corev1.ConditionTrue {
			t.Fatalf("not ready: %+v", got.Status)
		}
		alive.Store(1)
		r.advance(6 * time.Second)
		if got := r.get("web"); got.Status.ContainerStatuses[0].RestartCount != 1 {
			t.Errorf("not restarted: %+v; %s", got.Status.ContainerStatuses[0], r.calls())
		}
		if texts := r.eventTexts(); !strings.Contains(texts, "Normal Killing Container web failed liveness probe, will be restarted") {
			t.Errorf("events:\n%s", texts)
		}
	})
}

func TestLostSandboxIsReplaced(t *testing.T) {
	bubble(t, func(r *rig) {
		r.start()
		r.create(pod("web", app("web")))
		boxes, _ := r.runtime.ListPodSandbox(context.Background(), &runtimeapi.ListPodSandboxRequest{})
		if _, err := r.runtime.StopPodSandbox(context.Background(), &runtimeapi.StopPodSandboxRequest{PodSandboxId: boxes.Items[0].Id}); err != nil {
			t.Fatal(err)
		}
		r.settle()
		got := r.get("web")
		if condition(got, corev1.PodReady) != corev1.ConditionTrue || got.Status.ContainerStatuses[0].RestartCount != 1 {
			t.Errorf("status: %+v; %s", got.Status.ContainerStatuses, r.calls())
		}
	})
}
