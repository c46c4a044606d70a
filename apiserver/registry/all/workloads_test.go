package all_test

import (
	"context"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/request"
)

var labels = map[string]string{"app": "web"}

func template() corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "nginx"}}},
	}
}

// wants runs the create steps and compares the error with a part of it; "" is success.
func wants[T runtime.Object](t *testing.T, r *registry.Resource, obj T, want string) T {
	t.Helper()
	obj, _, err := create(t, r, obj)
	compare(t, err, want)
	return obj
}

func compare(t *testing.T, err error, want string) {
	t.Helper()
	switch {
	case err == nil && want != "":
		t.Errorf("no error, want %s", want)
	case err != nil && (want == "" || !strings.Contains(err.Error(), want)):
		t.Errorf("got %v, want %q", err, want)
	}
}

func TestDeployment(t *testing.T) {
	t.Parallel()
	r := find(t, registry.Env{}, "Deployment")
	deployment := func(change func(*appsv1.DeploymentSpec)) *appsv1.Deployment {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default"}, Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template(),
		}}
		change(&d.Spec)
		return d
	}
	old := wants(t, r, deployment(func(*appsv1.DeploymentSpec) {}), "")
	s := old.Spec
	if *s.Replicas != 1 || *s.RevisionHistoryLimit != 10 || *s.ProgressDeadlineSeconds != 600 || s.Strategy.Type != appsv1.RollingUpdateDeploymentStrategyType ||
		s.Strategy.RollingUpdate.MaxSurge.String() != "25%" || s.Template.Spec.RestartPolicy != corev1.RestartPolicyAlways || old.Generation != 1 {
		t.Errorf("defaults: %+v", old)
	}
	for want, change := range map[string]func(*appsv1.DeploymentSpec){
		"spec.selector: Required value":                                                        func(s *appsv1.DeploymentSpec) { s.Selector = nil },
		"empty selector is invalid for deployment":                                             func(s *appsv1.DeploymentSpec) { s.Selector = &metav1.LabelSelector{} },
		"`selector` does not match template `labels`":                                          func(s *appsv1.DeploymentSpec) { s.Template.Labels = nil },
		"spec.replicas: Invalid value: -1: must be greater than or equal to 0":                 func(s *appsv1.DeploymentSpec) { s.Replicas = ptr[int32](-1) },
		`spec.template.spec.restartPolicy: Unsupported value: "Never"`:                         func(s *appsv1.DeploymentSpec) { s.Template.Spec.RestartPolicy = corev1.RestartPolicyNever },
		"spec.template.spec.containers[0].image: Required value":                               func(s *appsv1.DeploymentSpec) { s.Template.Spec.Containers[0].Image = "" },
		"spec.progressDeadlineSeconds: Invalid value: 5: must be greater than minReadySeconds": func(s *appsv1.DeploymentSpec) { s.ProgressDeadlineSeconds, s.MinReadySeconds = ptr[int32](5), 5 },
		"spec.strategy.rollingUpdate.maxUnavailable: Invalid value: 0: may not be 0 when `maxSurge` is 0": func(s *appsv1.DeploymentSpec) {
			zero := intstr.FromInt32(0)
			s.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxSurge: &zero, MaxUnavailable: &zero}
		},
		"spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'": func(s *appsv1.DeploymentSpec) {
			s.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType, RollingUpdate: &appsv1.RollingUpdateDeployment{}}
		},
	} {
		wants(t, r, deployment(change), want)
	}
	now := old.DeepCopy()
	now.Spec.Selector.MatchLabels = map[string]string{"app": "web", "a": "b"}
	now.Spec.Template.Labels = now.Spec.Selector.MatchLabels
	_, err := update(t, r, now, old)
	compare(t, err, "spec.selector: Invalid value")
	now = old.DeepCopy()
	now.Annotations = map[string]string{"a": "b"}
	if now, err = update(t, r, now, old); err != nil || now.Generation != 2 {
		t.Errorf("generation %d, error %v", now.Generation, err)
	}
	scale, err := r.Scale.Get(old)
	if err != nil || scale.Status.Selector != "app=web" || scale.Spec.Replicas != 1 {
		t.Errorf("scale %+v, error %v", scale, err)
	}
	now = old.DeepCopy()
	if err := r.Scale.Set(now, 3); err != nil || *now.Spec.Replicas != 3 || *old.Spec.Replicas != 1 {
		t.Errorf("replicas %d, error %v", *now.Spec.Replicas, err)
	}
}

func TestStatefulSetAndDaemonSet(t *testing.T) {
	t.Parallel()
	selector := &metav1.LabelSelector{MatchLabels: labels}
	sets := find(t, registry.Env{}, "StatefulSet")
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "db"}, Spec: appsv1.StatefulSetSpec{
		Selector: selector, Template: template(), ServiceName: "db",
		VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}, Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{"storage": resource.MustParse("1Gi")}},
		}}},
	}}
	set.Spec.Template.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
	set = wants(t, sets, set, "")
	if s := set.Spec; *s.Replicas != 1 || s.PodManagementPolicy != appsv1.OrderedReadyPodManagement || *s.UpdateStrategy.RollingUpdate.Partition != 0 ||
		s.PersistentVolumeClaimRetentionPolicy.WhenDeleted != appsv1.RetainPersistentVolumeClaimRetentionPolicyType || len(s.Template.Spec.Volumes) != 0 {
		t.Errorf("defaults: %+v", s)
	}
	now := set.DeepCopy()
	now.Spec.ServiceName = "other"
	_, err := update(t, sets, now, set)
	compare(t, err, `spec.serviceName: Invalid value: "other": field is immutable`)

	r := find(t, registry.Env{}, "DaemonSet")
	ds := wants(t, r, &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: "agent"}, Spec: appsv1.DaemonSetSpec{Selector: selector, Template: template()}}, "")
	changed := ds.DeepCopy()
	changed.Spec.Template.Spec.Containers[0].Image = "nginx:2"
	if changed, err = update(t, r, changed, ds); err != nil || changed.Generation != 2 || ds.Annotations[appsv1.DeprecatedTemplateGeneration] != "1" || changed.Annotations[appsv1.DeprecatedTemplateGeneration] != "2" {
		t.Errorf("generation %d, annotations %v, error %v", changed.Generation, changed.Annotations, err)
	}
}

func TestJob(t *testing.T) {
	t.Parallel()
	r := find(t, registry.Env{}, "Job")
	job := func(change func(*batchv1.JobSpec)) *batchv1.Job {
		j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "sum", Namespace: "default", UID: "42"}, Spec: batchv1.JobSpec{Template: template()}}
		j.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
		j.Spec.Template.Labels = nil
		change(&j.Spec)
		return j
	}
	old := wants(t, r, job(func(*batchv1.JobSpec) {}), "")
	s := old.Spec
	if *s.Completions != 1 || *s.Parallelism != 1 || *s.BackoffLimit != 6 || *s.CompletionMode != batchv1.NonIndexedCompletion || *s.PodReplacementPolicy != batchv1.TerminatingOrFailed ||
		s.Selector.MatchLabels[batchv1.ControllerUidLabel] != "42" || s.Template.Labels["job-name"] != "sum" || s.Template.Labels[batchv1.JobNameLabel] != "sum" {
		t.Errorf("defaults: %+v", s)
	}
	for want, change := range map[string]func(*batchv1.JobSpec){
		`spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"`: func(s *batchv1.JobSpec) { s.Template.Spec.RestartPolicy = "" },
		"spec.completions: Required value: when completion mode is Indexed": func(s *batchv1.JobSpec) {
			s.CompletionMode, s.Parallelism = ptr(batchv1.IndexedCompletion), ptr[int32](1)
		},
		"spec.backoffLimitPerIndex: Invalid value: 1: requires indexed completion mode": func(s *batchv1.JobSpec) { s.BackoffLimitPerIndex = ptr[int32](1) },
		"spec.selector: Invalid value":                              func(s *batchv1.JobSpec) { s.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}} },
		`spec.template.metadata.labels[job-name]: Invalid value: {`: func(s *batchv1.JobSpec) { s.Template.Labels = map[string]string{"job-name": "other"} },
		"spec.podFailurePolicy.rules[0].onExitCodes.values: Invalid value: [3,1]: must be ordered": func(s *batchv1.JobSpec) {
			s.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{Action: batchv1.PodFailurePolicyActionFailJob,
				OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{Operator: batchv1.PodFailurePolicyOnExitCodesOpIn, Values: []int32{3, 1}}}}}
		},
		`spec.successPolicy.rules[0].succeededIndexes: Invalid value: "0-3": error parsing succeededIndexes: too large index: "3"`: func(s *batchv1.JobSpec) {
			s.CompletionMode, s.Completions = ptr(batchv1.IndexedCompletion), ptr[int32](3)
			s.SuccessPolicy = &batchv1.SuccessPolicy{Rules: []batchv1.SuccessPolicyRule{{SucceededIndexes: ptr("0-3")}}}
		},
	} {
		wants(t, r, job(change), want)
	}
	now := old.DeepCopy()
	now.Spec.Template.Spec.Containers[0].Image = "other"
	_, err := update(t, r, now, old)
	compare(t, err, "spec.template: Invalid value")
	suspended := old.DeepCopy()
	suspended.Spec.Suspend = ptr(true)
	now = suspended.DeepCopy()
	now.Spec.Template.Spec.NodeSelector = map[string]string{"zone": "a"}
	now.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("1")}
	if _, err = update(t, r, now, suspended); err != nil {
		t.Errorf("scheduling of a suspended job: %v", err)
	}

	done := old.DeepCopy()
	done.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
	errs := r.Status.ValidateUpdate(context.Background(), done, old).ToAggregate()
	for _, want := range []string{"status.completionTime: Required value: completionTime is required for Complete jobs",
		"cannot set Complete=True condition without the SuccessCriteriaMet=true condition", "status.startTime: Required value: startTime is required for finished job"} {
		compare(t, errs, want)
	}
}

func TestCronJobSchedule(t *testing.T) {
	t.Parallel()
	r := find(t, registry.Env{}, "CronJob")
	for schedule, want := range map[string]string{
		"*/5 * * * *": "", "@hourly": "", "0 9-17 * jan-mar mon,wed": "", "@every 1h": "",
		"":                      "spec.schedule: Required value",
		"* * * *":               "expected exactly 5 fields, found 4: [* * * *]",
		"60 * * * *":            "end of range (60) above maximum (59): 60",
		"* * 0 * *":             "beginning of range (0) below minimum (1): 0",
		"*/0 * * * *":           "step of range should be a positive number: */0",
		"x * * * *":             `failed to parse int from x: strconv.Atoi: parsing "x": invalid syntax`,
		"@never":                "unrecognized descriptor: @never",
		"CRON_TZ=UTC * * * * *": "cannot use TZ or CRON_TZ in schedule, use timeZone field instead",
	} {
		cj := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Spec: batchv1.CronJobSpec{Schedule: schedule, JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: template()}}}}
		cj.Spec.JobTemplate.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
		wants(t, r, cj, want)
	}
}

func TestEndpointSliceLeaseAndBinding(t *testing.T) {
	t.Parallel()
	slices := find(t, registry.Env{}, "EndpointSlice")
	slice := wants(t, slices, &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1"}}}, Ports: []discoveryv1.EndpointPort{{}}}, "")
	if *slice.Ports[0].Protocol != corev1.ProtocolTCP || *slice.Ports[0].Name != "" || slice.Generation != 1 {
		t.Errorf("defaults: %+v", slice)
	}
	wants(t, slices, &discoveryv1.EndpointSlice{Endpoints: []discoveryv1.Endpoint{{}}}, "endpoints[0].addresses: Required value")
	wants(t, slices, &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv6, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1"}}}}, "must be an IPv6 address")

	wants(t, find(t, registry.Env{}, "Lease"), &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{LeaseDurationSeconds: ptr[int32](0)}}, "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0")

	r := find(t, registry.Env{}, "RoleBinding")
	binding := wants(t, r, &rbacv1.RoleBinding{RoleRef: rbacv1.RoleRef{Kind: "Role", Name: "r"}, Subjects: []rbacv1.Subject{{Kind: "User", Name: "u"}}}, "")
	if binding.RoleRef.APIGroup != rbacv1.GroupName || binding.Subjects[0].APIGroup != rbacv1.GroupName {
		t.Errorf("defaults: %+v", binding)
	}
	other := binding.DeepCopy()
	other.RoleRef.Name = "s"
	_, err := update(t, r, other, binding)
	compare(t, err, "roleRef: Invalid value")
}

func TestEvent(t *testing.T) {
	t.Parallel()
	r := find(t, registry.Env{}, "Event")
	event := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Name: "e", Namespace: "default"},
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: "web", Namespace: "default"},
		Reason:         "Started", Message: "Started container", Type: corev1.EventTypeNormal, Source: corev1.EventSource{Component: "kubelet"}, Count: 2,
	}
	wants(t, r, event, "")
	served, err := r.Also[0].From(event)
	if err != nil {
		t.Fatal(err)
	}
	back, err := r.Also[0].To(served)
	if err != nil {
		t.Fatal(err)
	}
	back.(*corev1.Event).TypeMeta = event.TypeMeta
	if !equality.Semantic.DeepEqual(event, back) {
		t.Errorf("got %+v", back)
	}
	if f := r.Fields(event); f["involvedObject.name"] != "web" || f["regarding.name"] != "web" || f["source"] != "kubelet" {
		t.Errorf("fields %v", f)
	}
	elsewhere := event.DeepCopy()
	elsewhere.Namespace = "other"
	wants(t, r, elsewhere, "involvedObject.namespace: Invalid value: \"default\": does not match event.namespace")

	ctx := request.With(context.Background(), &request.State{Info: request.Info{Group: "events.k8s.io"}})
	errs := r.Strategy.Validate(ctx, event).ToAggregate()
	for _, want := range []string{"eventTime: Required value", "count: Invalid value: \"\": needs to be unset", "source: Invalid value: \"\": needs to be unset"} {
		compare(t, errs, want)
	}
}

func TestAutoscalerVersions(t *testing.T) {
	t.Parallel()
	r := find(t, registry.Env{}, "HorizontalPodAutoscaler")
	hpa := wants(t, r, &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
		ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{Kind: "Deployment", Name: "web", APIVersion: "apps/v1"}, MaxReplicas: 3,
		Behavior: &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleDown: &autoscalingv2.HPAScalingRules{StabilizationWindowSeconds: ptr[int32](60)}},
		Metrics: []autoscalingv2.MetricSpec{
			{Type: autoscalingv2.PodsMetricSourceType, Pods: &autoscalingv2.PodsMetricSource{Metric: autoscalingv2.MetricIdentifier{Name: "rps"}, Target: autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: ptr(resource.MustParse("100"))}}},
			{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{Name: corev1.ResourceCPU, Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: ptr[int32](70)}}},
		},
	}}, "")
	if b := hpa.Spec.Behavior; len(b.ScaleUp.Policies) != 2 || len(b.ScaleDown.Policies) != 1 || *b.ScaleDown.StabilizationWindowSeconds != 60 {
		t.Errorf("behavior %+v", b)
	}
	served, err := r.Also[0].From(hpa)
	if err != nil {
		t.Fatal(err)
	}
	v1 := served.(*autoscalingv1.HorizontalPodAutoscaler)
	if *v1.Spec.TargetCPUUtilizationPercentage != 70 || !strings.Contains(v1.Annotations["autoscaling.alpha.kubernetes.io/metrics"], "rps") {
		t.Errorf("as v1: %+v", v1)
	}
	back, err := r.Also[0].To(v1)
	if err != nil {
		t.Fatal(err)
	}
	back.(*autoscalingv2.HorizontalPodAutoscaler).TypeMeta = hpa.TypeMeta
	if !equality.Semantic.DeepEqual(back, hpa) {
		t.Errorf("got  %+v\nwant %+v", back, hpa)
	}
}
