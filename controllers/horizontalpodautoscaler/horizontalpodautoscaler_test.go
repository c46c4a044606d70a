package horizontalpodautoscaler_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/periplus/periplus/client"
	"github.com/periplus/periplus/controllers"
	"github.com/periplus/periplus/controllers/controllerstest"
	"github.com/periplus/periplus/controllers/horizontalpodautoscaler"
)

// A world is a cluster with an autoscaler named web, and the server of what it scales.
type world struct {
	*controllerstest.Cluster
	*server
	t *testing.T
}

// begin starts the controller with the objects that spec and more describe.
func begin(t *testing.T, s *server, spec string, more ...runtime.Object) *world {
	t.Helper()
	if s.path == "" {
		s.path = "/apis/apps/v1/namespaces/default/deployments/web"
	}
	s.asked, s.window = map[string]int{}, 15*time.Second
	if s.selector == "" {
		s.selector = "app=web"
	}
	objects := append([]runtime.Object{autoscaler(t, "web", spec)}, more...)
	for i := range 4 {
		objects = append(objects, pod(fmt.Sprintf("web-%d", i)))
	}
	c := controllerstest.Start(t, []controllers.Controller{horizontalpodautoscaler.Controller()}, func(e *controllers.Env) {
		e.ConfigFor = func(string) *rest.Config { return client.InProcess(s, "test", identity) }
		e.Options.Autoscaling = s.settings
	}, objects...)
	synctest.Wait()
	return &world{c, s, t}
}

func autoscaler(t *testing.T, name, spec string) *autoscalingv2.HorizontalPodAutoscaler {
	t.Helper()
	a := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: "uid-" + "hpa", Generation: 1}}
	if err := yaml.UnmarshalStrict([]byte(spec), &a.Spec); err != nil {
		t.Fatal(err)
	}
	return a
}

// pod has been ready for an hour, and requests 100m in two containers.
func pod(name string) *corev1.Pod {
	start := metav1.NewTime(time.Now().Add(-time.Hour))
	half := corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("50m"), "memory": resource.MustParse("8Mi")}}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Resources: half}, {Name: "log", Resources: half}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &start, Conditions: []corev1.PodCondition{
			{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: start},
		}},
	}
}

func (w *world) pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func (w *world) get() *autoscalingv2.HorizontalPodAutoscaler {
	w.t.Helper()
	a, err := w.Client.AutoscalingV2().HorizontalPodAutoscalers("default").Get(context.Background(), "web", metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

// conditions is "Type=Status Reason …", sorted.
func (w *world) conditions() string {
	w.t.Helper()
	var out []string
	for _, c := range w.get().Status.Conditions {
		out = append(out, fmt.Sprintf("%s=%s %s", c.Type, c.Status, c.Reason))
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

func (w *world) want(replicas int32, conditions string) {
	w.t.Helper()
	if got := w.now(); got != replicas {
		w.t.Errorf("%d replicas, want %d", got, replicas)
	}
	if got := w.conditions(); conditions != "" && got != conditions {
		w.t.Errorf("conditions %s\nwant %s", got, conditions)
	}
}

func (w *world) wantEvent(text string) {
	w.t.Helper()
	if got := w.Events(); !slices.Contains(got, text) {
		w.t.Errorf("no event %q in %q", text, got)
	}
}

func uses(milli int64, pods int) map[string]int64 {
	out := map[string]int64{}
	for i := range pods {
		out[fmt.Sprintf("web-%d", i)] = milli
	}
	return out
}

const half = `
scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
minReplicas: 1
maxReplicas: 10
metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}]
`

// TestUpAndDown follows load: up at once, down after the highest recommendation of
// five minutes has passed.
func TestUpAndDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := begin(t, &server{replicas: 4, use: uses(90, 4)}, half)
		w.want(8, "AbleToScale=True SucceededRescale, ScaledToZero=False NotScaledToZero, ScalingActive=True ValidMetricFound, ScalingLimited=False DesiredWithinRange")
		w.wantEvent("SuccessfulRescale: New size: 8; reason: cpu resource utilization (percentage of request) above target")
		st := w.get().Status
		if st.CurrentReplicas != 4 || st.DesiredReplicas != 8 || st.LastScaleTime == nil || *st.ObservedGeneration != 1 ||
			*st.CurrentMetrics[0].Resource.Current.AverageUtilization != 90 || st.CurrentMetrics[0].Resource.Current.AverageValue.String() != "90m" {
			t.Errorf("status %+v", st)
		}

		w.set(func() { w.use = uses(10, 4) })
		w.pass(16 * time.Second)
		w.want(8, "AbleToScale=True ScaleDownStabilized, ScaledToZero=False NotScaledToZero, ScalingActive=True ValidMetricFound, ScalingLimited=False DesiredWithinRange")
		w.pass(4 * time.Minute)
		w.want(8, "")
		w.pass(time.Minute)
		w.want(1, "")
		w.wantEvent("SuccessfulRescale: New size: 1; reason: All metrics below target")
	})
}

// TestIdle lets an hour pass in which nothing changes: one look in 15 seconds, nothing written.
func TestIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := begin(t, &server{replicas: 4, use: uses(50, 4)}, half)
		w.want(4, "AbleToScale=True ReadyForNewScale, ScalingActive=True ValidMetricFound, ScalingLimited=False DesiredWithinRange")
		w.pass(time.Minute)
		before := len(w.Client.Actions())
		looks := w.count("GET " + w.path + "/scale")
		w.pass(time.Hour)
		if got := w.count("GET "+w.path+"/scale") - looks; got != 240 {
			t.Errorf("%d looks in an hour", got)
		}
		if after := w.Client.Actions(); len(after) != before {
			t.Errorf("requests %v", after[before:])
		}

		// A new spec is looked at at once; a deleted autoscaler no more.
		a := w.get()
		a.Spec.MaxReplicas = 3
		if _, err := w.Client.AutoscalingV2().HorizontalPodAutoscalers("default").Update(context.Background(), a, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		w.want(3, "")
		w.wantEvent("SuccessfulRescale: New size: 3; reason: Current number of replicas above Spec.MaxReplicas")
		if err := w.Client.AutoscalingV2().HorizontalPodAutoscalers("default").Delete(context.Background(), "web", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		looks = w.count("GET " + w.path + "/scale")
		w.pass(time.Hour)
		if got := w.count("GET " + w.path + "/scale"); got != looks {
			t.Error("a deleted autoscaler is looked at")
		}
	})
}

// TestBehavior shows windows of zero, policies and a tolerance of its own.
func TestBehavior(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := begin(t, &server{replicas: 4, use: uses(90, 4)}, half+`
behavior:
  scaleUp: {stabilizationWindowSeconds: 0, selectPolicy: Max, policies: [{type: Pods, value: 1, periodSeconds: 60}], tolerance: "0.5"}
  scaleDown: {stabilizationWindowSeconds: 0, selectPolicy: Max, policies: [{type: Percent, value: 50, periodSeconds: 15}]}
`)
		w.want(5, "AbleToScale=True SucceededRescale, ScaledToZero=False NotScaledToZero, ScalingActive=True ValidMetricFound, ScalingLimited=True ScaleUpLimit")
		w.pass(31 * time.Second)
		w.want(5, "")
		w.pass(30 * time.Second)
		w.want(6, "")
		w.set(func() { w.use = uses(70, 4) }) // within the tolerance
		w.pass(2 * time.Minute)
		w.want(6, "AbleToScale=True ReadyForNewScale, ScaledToZero=False NotScaledToZero, ScalingActive=True ValidMetricFound, ScalingLimited=False DesiredWithinRange")
		w.set(func() { w.use = uses(1, 4) })
		w.pass(16 * time.Second)
		w.want(3, "")
	})
}

// TestContainerAndMemory scales by one container, and by an amount of memory.
func TestContainerAndMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := begin(t, &server{replicas: 4, use: uses(51, 4)}, `
scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
maxReplicas: 20
metrics:
- {type: ContainerResource, containerResource: {name: cpu, container: app, target: {type: Utilization, averageUtilization: 50}}}
- {type: Resource, resource: {name: memory, target: {type: AverageValue, averageValue: 4Mi}}}
`)
		w.want(8, "")
		w.pass(16 * time.Second)
		w.want(12, "") // twelve MiB of four
		st := w.get().Status.CurrentMetrics
		if *st[0].ContainerResource.Current.AverageUtilization != 100 || st[1].Resource.Current.AverageValue.String() != "12Mi" {
			t.Errorf("metrics %+v", st)
		}
		w.wantEvent("SuccessfulRescale: New size: 8; reason: memory resource above target")
	})
}

// TestWithoutMetrics shows what is said when figures, requests or scales are missing.
func TestWithoutMetrics(t *testing.T) {
	for name, c := range map[string]struct {
		server     *server
		spec       string
		change     func(*corev1.Pod)
		conditions string
		events     []string
	}{
		"no metrics API": {&server{replicas: 4}, half, nil,
			"AbleToScale=True SucceededGetScale, ScalingActive=False FailedGetResourceMetric",
			[]string{
				"FailedGetResourceMetric: failed to get cpu utilization: unable to get metrics for resource cpu: unable to fetch metrics from resource metrics API: the server could not find the requested resource",
				"FailedComputeMetricsReplicas: invalid metrics (1 invalid out of 1), first error is: failed to get cpu resource metric value: failed to get cpu utilization: unable to get metrics for resource cpu: unable to fetch metrics from resource metrics API: the server could not find the requested resource",
			}},
		"no figures": {&server{replicas: 4, use: map[string]int64{}}, half, nil, "AbleToScale=True SucceededGetScale, ScalingActive=False FailedGetResourceMetric",
			[]string{"FailedGetResourceMetric: failed to get cpu utilization: unable to get metrics for resource cpu: no metrics returned from resource metrics API"}},
		"no request": {&server{replicas: 4, use: uses(90, 4)}, half, func(p *corev1.Pod) { p.Spec.Containers[1].Resources.Requests = nil },
			"AbleToScale=True SucceededGetScale, ScalingActive=False FailedGetResourceMetric",
			[]string{"FailedGetResourceMetric: failed to get cpu utilization: missing request for cpu in container log of Pod odd"}},
		"no scale": {&server{replicas: 4, path: "/elsewhere"}, half, nil, "AbleToScale=False FailedGetScale",
			[]string{"FailedGetScale: the server could not find the requested resource"}},
		"no such kind": {&server{replicas: 4}, "{scaleTargetRef: {apiVersion: apps/v1, kind: Deploy, name: web}, maxReplicas: 3}", nil, "AbleToScale=False FailedGetScale",
			[]string{`FailedGetScale: no matches for kind "Deploy" in group "apps"`}},
		"nothing to scale": {&server{replicas: 0, use: uses(90, 4)}, half, nil, "AbleToScale=True SucceededGetScale, ScalingActive=False ScalingDisabled", nil},
		"no custom metrics API": {
			&server{replicas: 4}, "{scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, maxReplicas: 9, metrics: [{type: Pods, pods: {metric: {name: rate}, target: {type: AverageValue, averageValue: 1}}}]}", nil,
			"AbleToScale=True SucceededGetScale, ScalingActive=False FailedGetPodsMetric",
			[]string{"FailedGetPodsMetric: unable to get metric rate: unable to fetch metrics from custom metrics API: no custom metrics API (custom.metrics.k8s.io) registered"},
		},
		"no external metrics API": {&server{replicas: 2}, "{scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, maxReplicas: 3, metrics: [{type: External, external: {metric: {name: queue}, target: {type: Value, value: 1}}}]}", nil,
			"AbleToScale=True SucceededGetScale, ScalingActive=False FailedGetExternalMetric",
			[]string{"FailedGetExternalMetric: failed to get external metric queue: unable to get external metric default/queue/nil: unable to fetch metrics from external metrics API: the server could not find the metric for /apis/external.metrics.k8s.io/v1beta1/namespaces/default/queue"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var more []runtime.Object
				if c.change != nil {
					p := pod("odd")
					c.change(p)
					more = append(more, p)
				}
				s := c.server
				before := s.replicas
				w := begin(t, s, c.spec, more...)
				w.want(before, c.conditions)
				for _, e := range c.events {
					w.wantEvent(e)
				}
			})
		})
	}
}

// TestCustomMetrics reads metrics of pods and objects, and scales a custom resource.
func TestCustomMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const api = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/default/"
		w := begin(t, &server{
			path: "/apis/ships.example.com/v2/namespaces/default/fleets/web", replicas: 4,
			custom: map[string]string{
				api + "pods/%2A/rate?labelSelector=app%3Dweb":              "web-0=3 web-1=3 web-2=3 web-3=3",
				api + "services/front/hits?metricLabelSelector=verb%3DGET": "front=900m",
			},
		}, `
scaleTargetRef: {apiVersion: ships.example.com/v1, kind: Fleet, name: web}
maxReplicas: 20
metrics:
- {type: Pods, pods: {metric: {name: rate}, target: {type: AverageValue, averageValue: 2}}}
- {type: Object, object: {describedObject: {apiVersion: v1, kind: Service, name: front}, metric: {name: hits, selector: {matchLabels: {verb: GET}}}, target: {type: Value, value: 100m}}}
`)
		if got := w.now(); got != 8 {
			t.Errorf("%d replicas; events %q; %v", got, w.Events(), w.asked)
		}
		w.pass(16 * time.Second)
		w.want(16, "") // nine times as many as four, by at most twice as many
		w.wantEvent("SuccessfulRescale: New size: 8; reason: Service metric hits above target")

		// One metric is lost: it goes on by the other, but not down.
		w.set(func() { delete(w.custom, api+"services/front/hits?metricLabelSelector=verb%3DGET") })
		w.pass(16 * time.Second)
		w.want(16, "")
		if got := w.conditions(); !strings.Contains(got, "ScalingActive=False FailedGetObjectMetric") {
			t.Errorf("conditions %s", got)
		}
	})
}

// TestScaleToZero goes to zero with an empty queue and comes back by itself; what
// somebody else has scaled to zero stays there.
func TestScaleToZero(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const queue = "/apis/external.metrics.k8s.io/v1beta1/namespaces/default/queue"
		w := begin(t, &server{replicas: 2, external: map[string]string{queue: "a=0"}}, `
scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
minReplicas: 0
maxReplicas: 5
metrics: [{type: External, external: {metric: {name: queue}, target: {type: AverageValue, averageValue: 10}}}]
behavior:
  scaleUp: {stabilizationWindowSeconds: 0, selectPolicy: Max, policies: [{type: Pods, value: 4, periodSeconds: 15}]}
  scaleDown: {stabilizationWindowSeconds: 0, selectPolicy: Max, policies: [{type: Percent, value: 100, periodSeconds: 15}]}
`)
		w.want(0, "AbleToScale=True SucceededRescale, ScaledToZero=True ScaledToZero, ScalingActive=True ValidMetricFound, ScalingLimited=False DesiredWithinRange")
		w.pass(time.Minute)
		w.want(0, "")
		w.set(func() { w.external[queue] = "a=15 b=6" })
		w.pass(16 * time.Second)
		w.want(3, "AbleToScale=True SucceededRescale, ScaledToZero=False NotScaledToZero, ScalingActive=True ValidMetricFound, ScalingLimited=False DesiredWithinRange")
		w.set(func() { w.replicas = 0 })
		w.pass(16 * time.Second)
		w.want(0, "AbleToScale=True SucceededGetScale, ScaledToZero=False NotScaledToZero, ScalingActive=False ScalingDisabled, ScalingLimited=False DesiredWithinRange")
	})
}

// TestConflict writes a scale that changes all the time.
func TestConflict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := begin(t, &server{replicas: 4, use: uses(90, 4), conflicts: 2}, half)
		w.want(8, "")
		w.set(func() { w.replicas, w.conflicts = 4, 100 })
		w.pass(16 * time.Second)
		w.want(4, "AbleToScale=False FailedUpdateScale, ScaledToZero=False NotScaledToZero, ScalingActive=True ValidMetricFound, ScalingLimited=False DesiredWithinRange")
		w.wantEvent("FailedRescale: New size: 8; reason: cpu resource utilization (percentage of request) above target; error: the object has been modified")
	})
}

// TestRivals has two autoscalers for the same pods.
func TestRivals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := begin(t, &server{replicas: 4, use: uses(50, 4)}, half, autoscaler(t, "other", half))
		w.pass(16 * time.Second)
		w.want(4, "")
		w.wantEvent("AmbiguousSelector: pods by selector app=web are controlled by more than one HPA (e.g. [{other default} {web default}])")
		if got := w.conditions(); !strings.Contains(got, "ScalingActive=False AmbiguousSelector") {
			t.Errorf("conditions %s", got)
		}
	})
}
