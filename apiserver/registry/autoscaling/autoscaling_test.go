package autoscaling_test

import (
	"slices"
	"strings"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/autoscaling"
)

func resource(t *testing.T) *registry.Resource {
	t.Helper()
	return autoscaling.Resources(registry.Env{})[0]
}

func parse(t *testing.T, text string) *autoscalingv2.HorizontalPodAutoscaler {
	t.Helper()
	hpa := &autoscalingv2.HorizontalPodAutoscaler{}
	if err := yaml.UnmarshalStrict([]byte(text), hpa); err != nil {
		t.Fatal(err)
	}
	return hpa
}

const target = `{scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, maxReplicas: 3`

// TestValidation compares the errors of specs with upstream's.
func TestValidation(t *testing.T) {
	t.Parallel()
	for spec, want := range map[string]string{
		target + `}`: "",
		target + `, minReplicas: 0, metrics: [{type: External, external: {metric: {name: q}, target: {type: Value, value: 1}}}]}`: "",
		target + `, minReplicas: 0}`:                                                                                        "spec.metrics: Forbidden: must specify at least one Object or External metric to support scaling to zero replicas",
		target + `, minReplicas: 4}`:                                                                                        "spec.maxReplicas: Invalid value: 3: must be greater than or equal to `minReplicas`",
		`{scaleTargetRef: {kind: Deployment, name: web}, maxReplicas: 3}`:                                                   `spec.scaleTargetRef.apiVersion: Invalid value: "": apiVersion must specify API group`,
		`{scaleTargetRef: {kind: ReplicationController, name: web}, maxReplicas: 3}`:                                        "",
		`{scaleTargetRef: {apiVersion: apps/v1, kind: a/b, name: ..}, maxReplicas: 3}`:                                      "spec.scaleTargetRef.kind: Invalid value: \"a/b\": may not contain '/'\nspec.scaleTargetRef.name: Invalid value: \"..\": may not be '..'",
		`{scaleTargetRef: {apiVersion: a/b/c, kind: Deployment, name: web}, maxReplicas: 3}`:                                `spec.scaleTargetRef.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c`,
		`{scaleTargetRef: {}}`:                                                                                              "spec.maxReplicas: Required value\nspec.maxReplicas: Invalid value: 0: must be greater than or equal to `minReplicas`\nspec.scaleTargetRef.kind: Required value\nspec.scaleTargetRef.name: Required value\n" + `spec.scaleTargetRef.apiVersion: Invalid value: "": apiVersion must specify API group`,
		target + `, metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization}}}]}`:                       "spec.metrics[0].resource.target.averageUtilization: Required value: must set either a target raw value or a target utilization",
		target + `, metrics: [{type: Resource, pods: {metric: {name: q}, target: {type: AverageValue, averageValue: 1}}}]}`: "spec.metrics[0].resource: Required value: must populate information for the given metric source",
		target + `, metrics: [{type: Resource, resource: {name: cpu, target: {type: AverageValue, averageValue: 1}}, pods: {metric: {name: q}, target: {type: Value}}}]}`:     "spec.metrics[0].pods.target.averageValue: Required value: must specify a positive target averageValue\nspec.metrics[0].pods: Forbidden: must populate the given metric source only",
		target + `, metrics: [{type: Pods, pods: {metric: {name: ""}, target: {type: AverageValue, averageValue: -1}}}]}`:                                                     "spec.metrics[0].pods.metric.name: Required value: must specify a metric name\n" + `spec.metrics[0].pods.target.averageValue: Invalid value: "-1": must be positive`,
		target + `, metrics: [{type: External, external: {metric: {name: q}, target: {type: Value, value: 1, averageValue: 1}}}]}`:                                            "spec.metrics[0].external.target.value: Forbidden: may not set both a target value for metric and a per-pod target",
		target + `, metrics: [{type: Object, object: {describedObject: {kind: Service, name: s}, metric: {name: q}, target: {type: Value, value: 1}}}]}`:                      "",
		target + `, metrics: [{type: ContainerResource, containerResource: {name: disk, container: A, target: {type: Utilization, averageUtilization: 0}}}]}`:                 "spec.metrics[0].containerResource.name: Invalid value: \"disk\": must be a standard resource type or fully qualified",
		target + `, behavior: {scaleUp: {stabilizationWindowSeconds: 3601, selectPolicy: Most, policies: [{type: Pods, value: 0, periodSeconds: 1801}], tolerance: "-0.1"}}}`: "spec.behavior.scaleUp.stabilizationWindowSeconds: Invalid value: 3601: must be less than or equal to 3600\n" + `spec.behavior.scaleUp.selectPolicy: Unsupported value: "Most": supported values: "Disabled", "Max", "Min"` + "\nspec.behavior.scaleUp.policies[0].value: Invalid value: 0: must be greater than zero\nspec.behavior.scaleUp.policies[0].periodSeconds: Invalid value: 1801: must be less than or equal to 1800\n" + `spec.behavior.scaleUp.tolerance: Invalid value: "-100m": must be greater than or equal to 0`,
		target + `, behavior: {scaleDown: {policies: []}}}`: "spec.behavior.scaleDown.policies: Required value: must specify at least one Policy",
	} {
		hpa := parse(t, "metadata: {name: web}\nspec: "+spec)
		s := resource(t).Strategy
		s.Default(hpa)
		var got []string
		for _, err := range s.Validate(t.Context(), hpa) {
			got = append(got, err.Error())
		}
		if text := strings.Join(got, "\n"); !strings.HasPrefix(text, want) || want == "" && text != "" {
			t.Errorf("%s:\ngot  %s\nwant %s", spec, text, want)
		}
	}
}

// TestUpdateKeepsWhatWasStored changes an object whose reference would not be
// accepted any more.
func TestUpdateKeepsWhatWasStored(t *testing.T) {
	t.Parallel()
	s := resource(t).Strategy
	old := parse(t, "{metadata: {name: web, generation: 3}, spec: {scaleTargetRef: {kind: Deployment, name: web}, maxReplicas: 3}, status: {currentReplicas: 2}}")
	s.Default(old)
	next := old.DeepCopy()
	next.Spec.MaxReplicas, next.Status.CurrentReplicas = 4, 9
	s.PrepareForUpdate(t.Context(), next, old)
	if errs := s.ValidateUpdate(t.Context(), next, old); len(errs) > 0 || next.Generation != 4 || next.Status.CurrentReplicas != 2 {
		t.Errorf("%v, generation %d, status %+v", errs, next.Generation, next.Status)
	}
	next.Spec.ScaleTargetRef.Kind = "StatefulSet"
	if errs := s.ValidateUpdate(t.Context(), next, old); len(errs) != 1 {
		t.Errorf("another kind without a group: %v", errs)
	}
	next.Status.CurrentReplicas = -1
	if errs := resource(t).Status.ValidateUpdate(t.Context(), next, old); len(errs) != 1 {
		t.Errorf("negative replicas: %v", errs)
	}
}

// TestV1AndBack shows what v1 cannot say in annotations, and reads it back.
func TestV1AndBack(t *testing.T) {
	t.Parallel()
	hpa := parse(t, `
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web, annotations: {own: kept}}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  minReplicas: 1
  maxReplicas: 3
  metrics:
  - {type: External, external: {metric: {name: q}, target: {type: Value, value: "1"}}}
  - {type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}
  behavior: {scaleDown: {stabilizationWindowSeconds: 0, tolerance: "0.2"}}
status:
  conditions: [{type: AbleToScale, status: "True", reason: ReadyForNewScale}]
`)
	also := resource(t).Also[0]
	shown, err := also.From(hpa)
	if err != nil {
		t.Fatal(err)
	}
	v1 := shown.(*autoscalingv1.HorizontalPodAutoscaler)
	var keys []string
	for k := range v1.Annotations {
		keys = append(keys, strings.TrimPrefix(k, "autoscaling.alpha.kubernetes.io/"))
	}
	slices.Sort(keys)
	if *v1.Spec.TargetCPUUtilizationPercentage != 50 || strings.Join(keys, " ") != "behavior conditions metrics own" {
		t.Errorf("v1: %+v", v1)
	}
	var back runtime.Object
	if back, err = also.To(v1); err != nil {
		t.Fatal(err)
	}
	b := back.(*autoscalingv2.HorizontalPodAutoscaler)
	if len(b.Spec.Metrics) != 2 || b.Spec.Behavior.ScaleDown.Tolerance.String() != "200m" || len(b.Status.Conditions) != 1 || len(b.Annotations) != 1 {
		t.Errorf("back: %+v", b)
	}
}
