package quota_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/periplus/periplus/quota"
)

func amounts(pairs ...string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		out[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return out
}

func container(name string, requests, limits corev1.ResourceList) corev1.Container {
	return corev1.Container{Name: name, Resources: corev1.ResourceRequirements{Requests: requests, Limits: limits}}
}

func ptr[T any](v T) *T { return &v }

func TestUsage(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	busy := corev1.PodSpec{Containers: []corev1.Container{
		container("a", amounts("cpu", "100m", "memory", "1Gi", "example.com/dongle", "2", "hugepages-2Mi", "4Mi"), amounts("cpu", "1")),
		container("b", amounts("cpu", "200m"), nil),
	}}
	for name, c := range map[string]struct {
		gr   schema.GroupResource
		obj  runtime.Object
		want string
	}{
		"pod": {quota.Pods, &corev1.Pod{Spec: busy},
			"count/pods=1,cpu=300m,hugepages-2Mi=4Mi,limits.cpu=1,memory=1Gi,pods=1,requests.cpu=300m,requests.example.com/dongle=2,requests.hugepages-2Mi=4Mi,requests.memory=1Gi"},
		"ended pod": {quota.Pods, &corev1.Pod{Spec: busy, Status: corev1.PodStatus{Phase: corev1.PodFailed}}, "count/pods=1"},
		"overdue pod": {quota.Pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			DeletionTimestamp: &metav1.Time{Time: now.Add(-time.Minute)}, DeletionGracePeriodSeconds: ptr(int64(30))}, Spec: busy}, "count/pods=1"},
		"ending pod": {quota.Pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			DeletionTimestamp: &metav1.Time{Time: now.Add(-10 * time.Second)}, DeletionGracePeriodSeconds: ptr(int64(30))}}, "count/pods=1,pods=1"},
		"service":   {quota.Services, &corev1.Service{}, "count/services=1,services=1"},
		"node port": {quota.Services, &corev1.Service{Spec: corev1.ServiceSpec{Type: "NodePort", Ports: make([]corev1.ServicePort, 2)}}, "count/services=1,services=1,services.nodeports=2"},
		"load balancer without node ports": {quota.Services, &corev1.Service{Spec: corev1.ServiceSpec{
			Type: "LoadBalancer", AllocateLoadBalancerNodePorts: ptr(false), Ports: []corev1.ServicePort{{NodePort: 30000}, {}}}},
			"count/services=1,services=1,services.loadbalancers=1,services.nodeports=1"},
		"claim": {quota.Claims, &corev1.PersistentVolumeClaim{
			Spec:   corev1.PersistentVolumeClaimSpec{StorageClassName: ptr("gold"), Resources: corev1.VolumeResourceRequirements{Requests: amounts("storage", "1Gi")}},
			Status: corev1.PersistentVolumeClaimStatus{AllocatedResources: amounts("storage", "2Gi")}},
			"count/persistentvolumeclaims=1,gold.storageclass.storage.k8s.io/persistentvolumeclaims=1,gold.storageclass.storage.k8s.io/requests.storage=2Gi,persistentvolumeclaims=1,requests.storage=2Gi"},
		"secret":     {schema.GroupResource{Resource: "secrets"}, &corev1.Secret{}, "count/secrets=1,secrets=1"},
		"deployment": {schema.GroupResource{Group: "apps", Resource: "deployments"}, &metav1.PartialObjectMetadata{}, "count/deployments.apps=1"},
	} {
		if got := quota.String(quota.Usage(c.gr, c.obj, now)); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, c.want)
		}
	}
}

func TestCovers(t *testing.T) {
	t.Parallel()
	for name, want := range map[corev1.ResourceName]schema.GroupResource{
		"pods": quota.Pods, "cpu": quota.Pods, "limits.memory": quota.Pods, "requests.example.com/dongle": quota.Pods, "count/pods": quota.Pods,
		"services.nodeports": quota.Services, "requests.storage": quota.Claims, "gold.storageclass.storage.k8s.io/requests.storage": quota.Claims,
		"configmaps": {Resource: "configmaps"}, "count/jobs.batch": {Group: "batch", Resource: "jobs"},
	} {
		got, ok := quota.Kind(name)
		if !ok || got != want || !quota.Covers(want, name) {
			t.Errorf("%s: %v %t, covered: %t", name, got, ok, quota.Covers(want, name))
		}
	}
	if quota.Covers(quota.Pods, "requests.storage") || quota.Covers(schema.GroupResource{Group: "apps", Resource: "configmaps"}, "configmaps") {
		t.Error("a kind takes from another's amount")
	}
}

func TestMatches(t *testing.T) {
	t.Parallel()
	calm := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{container("a", nil, nil)}}}
	late := &corev1.Pod{Spec: corev1.PodSpec{ActiveDeadlineSeconds: ptr(int64(10)), PriorityClassName: "high", Containers: []corev1.Container{container("a", amounts("cpu", "1"), nil)}}}
	class := func(op corev1.ScopeSelectorOperator, values ...string) corev1.ResourceQuotaSpec {
		return corev1.ResourceQuotaSpec{ScopeSelector: &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{
			{ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: op, Values: values}}}}
	}
	for name, c := range map[string]struct {
		spec       corev1.ResourceQuotaSpec
		calm, late bool
	}{
		"none":            {corev1.ResourceQuotaSpec{}, true, true},
		"terminating":     {corev1.ResourceQuotaSpec{Scopes: []corev1.ResourceQuotaScope{"Terminating"}}, false, true},
		"not terminating": {corev1.ResourceQuotaSpec{Scopes: []corev1.ResourceQuotaScope{"NotTerminating"}}, true, false},
		"best effort":     {corev1.ResourceQuotaSpec{Scopes: []corev1.ResourceQuotaScope{"BestEffort", "NotTerminating"}}, true, false},
		"class exists":    {class(corev1.ScopeSelectorOpExists), false, true},
		"class in":        {class(corev1.ScopeSelectorOpIn, "high", "higher"), false, true},
		"class not in":    {class(corev1.ScopeSelectorOpNotIn, "high"), true, false},
	} {
		q := &corev1.ResourceQuota{Spec: c.spec}
		if got := quota.Matches(q, calm); got != c.calm {
			t.Errorf("%s, calm pod: %t", name, got)
		}
		if got := quota.Matches(q, late); got != c.late {
			t.Errorf("%s, late pod: %t", name, got)
		}
	}
}

func TestMissing(t *testing.T) {
	t.Parallel()
	pod := &corev1.Pod{Spec: corev1.PodSpec{
		Containers:     []corev1.Container{container("b", amounts("cpu", "1"), nil), container("a", nil, nil)},
		InitContainers: []corev1.Container{container("i", amounts("cpu", "1", "memory", "1"), amounts("memory", "1"))},
	}}
	hard := amounts("cpu", "1", "requests.memory", "1", "limits.memory", "1", "pods", "1")
	if got, want := quota.Missing(pod, hard), "cpu for: a; limits.memory for: a,b; requests.memory for: a,b"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	pod.Spec.Resources = &corev1.ResourceRequirements{Requests: amounts("cpu", "1", "memory", "1"), Limits: amounts("memory", "1")}
	if got := quota.Missing(pod, hard); got != "" {
		t.Errorf("with resources of the whole pod: %q", got)
	}
}

func TestArithmetic(t *testing.T) {
	t.Parallel()
	if got := quota.String(quota.Growth(amounts("cpu", "2", "memory", "1", "pods", "1"), amounts("cpu", "500m", "memory", "2"))); got != "cpu=1500m,pods=1" {
		t.Errorf("Growth: %s", got)
	}
	if got := quota.Exceeded(amounts("cpu", "2", "memory", "1", "x", "9"), amounts("cpu", "1", "memory", "1")); len(got) != 1 || got[0] != "cpu" {
		t.Errorf("Exceeded: %v", got)
	}
	if quota.Same(amounts("cpu", "1"), amounts("cpu", "1000m", "memory", "0")) || !quota.Same(amounts("cpu", "1"), amounts("cpu", "1000m")) {
		t.Error("Same")
	}
}

func TestScopeChanged(t *testing.T) {
	t.Parallel()
	long, ends := &corev1.Pod{}, &corev1.Pod{Spec: corev1.PodSpec{ActiveDeadlineSeconds: ptr(int64(1))}}
	if !quota.ScopeChanged(long, ends) || !quota.ScopeChanged(ends, long) || quota.ScopeChanged(ends, ends) || quota.ScopeChanged(nil, ends) {
		t.Error("a deadline moves a pod between the scopes, nothing else does")
	}
	gold, both := &corev1.PersistentVolumeClaim{}, &corev1.PersistentVolumeClaim{}
	gold.Spec.VolumeAttributesClassName = ptr("gold")
	both.Spec.VolumeAttributesClassName, both.Status.CurrentVolumeAttributesClassName = ptr("silver"), ptr("gold")
	if !quota.ScopeChanged(gold, both) || quota.ScopeChanged(both, both) {
		t.Error("a claim is in the scope of the class it has and of that it wants")
	}
	of := func(class string) *corev1.ResourceQuota {
		return &corev1.ResourceQuota{Spec: corev1.ResourceQuotaSpec{ScopeSelector: &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{
			{ScopeName: corev1.ResourceQuotaScopeVolumeAttributesClass, Operator: corev1.ScopeSelectorOpIn, Values: []string{class}}}}}}
	}
	if !quota.Matches(of("gold"), both) || !quota.Matches(of("silver"), both) || quota.Matches(of("silver"), gold) {
		t.Error("classes of quotas")
	}
}
