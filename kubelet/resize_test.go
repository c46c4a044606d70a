package kubelet_test

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func resources(cpu, memory string) corev1.ResourceRequirements {
	list := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
	return corev1.ResourceRequirements{Requests: list, Limits: list}
}

// resize changes the resources of a pod's first container.
func (r *rig) resize(name, cpu, memory string) *corev1.Pod {
	r.t.Helper()
	p := r.get(name)
	p.Spec.Containers[0].Resources = resources(cpu, memory)
	p.Generation++
	if _, err := r.client.CoreV1().Pods("default").Update(context.Background(), p, metav1.UpdateOptions{}); err != nil {
		r.t.Fatal(err)
	}
	r.settle()
	return r.get(name)
}

func findCondition(p *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range p.Status.Conditions {
		if p.Status.Conditions[i].Type == kind {
			return &p.Status.Conditions[i]
		}
	}
	return nil
}

func TestResizeWithoutRestart(t *testing.T) {
	bubble(t, func(r *rig) {
		r.start()
		p := pod("web", app("web"))
		p.Generation = 1
		p.Spec.Containers[0].Resources = resources("200m", "64Mi")
		r.create(p)
		id := r.runtime.Running("web")

		got := r.resize("web", "500m", "64Mi")
		if r.runtime.Running("web") != id || !strings.Contains(r.calls(), "resize web") {
			t.Fatalf("calls: %s", r.calls())
		}
		if l := r.runtime.Config(id).Linux.Resources; l.CpuQuota != 50_000 || l.CpuShares != 512 || l.MemoryLimitInBytes != 64<<20 {
			t.Errorf("limits: %+v", l)
		}
		s := got.Status.ContainerStatuses[0]
		if s.Resources.Limits.Cpu().String() != "500m" || s.AllocatedResources.Cpu().String() != "500m" {
			t.Errorf("status: %+v, %v", s.Resources, s.AllocatedResources)
		}
		texts := r.eventTexts()
		for _, e := range []string{"Normal ResizeStarted Pod resize started: {", "Normal ResizeCompleted Pod resize completed: {"} {
			if !strings.Contains(texts, e) {
				t.Errorf("no event %q in\n%s", e, texts)
			}
		}

		// More than the node has: told, and nothing changes, over a restart too.
		for range 2 {
			got = r.resize("web", "64", "64Mi")
			c := findCondition(got, corev1.PodResizePending)
			if c == nil || c.Reason != corev1.PodReasonInfeasible || c.Message != "Node didn't have enough capacity: cpu, requested: 64000, capacity: 2000" {
				t.Fatalf("condition: %+v", c)
			}
			if s := got.Status.ContainerStatuses[0]; s.Resources.Limits.Cpu().String() != "500m" || r.runtime.Running("web") != id {
				t.Fatalf("status: %+v, calls %s", s.Resources, r.calls())
			}
			r.stop()
			r.start()
		}
		if got = r.resize("web", "300m", "64Mi"); findCondition(got, corev1.PodResizePending) != nil || r.runtime.Config(id).Linux.Resources.CpuQuota != 30_000 {
			t.Errorf("status: %+v", got.Status)
		}
	})
}

func TestResizeWaitsForRoom(t *testing.T) {
	bubble(t, func(r *rig) {
		r.start()
		web, big := pod("web", app("web")), pod("big", app("big"))
		web.Spec.Containers[0].Resources, big.Spec.Containers[0].Resources = resources("200m", "64Mi"), resources("1500m", "64Mi")
		big.Spec.Containers[0].Image = "web:1"
		r.create(web)
		r.create(big)
		got := r.resize("web", "1", "64Mi")
		if c := findCondition(got, corev1.PodResizePending); c == nil || c.Reason != corev1.PodReasonDeferred ||
			c.Message != "Node didn't have enough resource: cpu, requested: 1000, used: 1500, capacity: 2000" {
			t.Fatalf("condition: %+v", c)
		}
		r.delete("big", 1)
		r.settle()
		got = r.get("web")
		if findCondition(got, corev1.PodResizePending) != nil || got.Status.ContainerStatuses[0].Resources.Limits.Cpu().String() != "1" {
			t.Errorf("status: %+v", got.Status)
		}
	})
}

func TestResizeByRestart(t *testing.T) {
	bubble(t, func(r *rig) {
		r.start()
		p := pod("web", app("web"))
		p.Spec.Containers[0].Resources = resources("200m", "64Mi")
		p.Spec.Containers[0].ResizePolicy = []corev1.ContainerResizePolicy{{ResourceName: corev1.ResourceMemory, RestartPolicy: corev1.RestartContainer}}
		r.create(p)
		id := r.runtime.Running("web")
		if r.resize("web", "300m", "64Mi"); r.runtime.Running("web") != id {
			t.Errorf("restarted for the processor's sake: %s", r.calls())
		}
		got := r.resize("web", "300m", "128Mi")
		after := r.runtime.Running("web")
		if after == id || after == "" || r.runtime.Config(after).Linux.Resources.MemoryLimitInBytes != 128<<20 {
			t.Errorf("calls: %s", r.calls())
		}
		if s := got.Status.ContainerStatuses[0]; s.RestartCount != 1 {
			t.Errorf("status: %+v", s)
		}
	})
}

func TestRejectedPodShowsWhy(t *testing.T) {
	bubble(t, func(r *rig) {
		r.start()
		p := pod("big", app("web"))
		p.Spec.Containers[0].Resources = resources("64", "64Mi")
		r.create(p)
		got := r.get("big")
		if got.Status.Phase != corev1.PodFailed || got.Status.Reason != "OutOfcpu" || len(got.Status.ContainerStatuses) != 0 {
			t.Errorf("status: %+v", got.Status)
		}
	})
}
