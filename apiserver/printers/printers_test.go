package printers_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/periplus/periplus/apiserver/printers"
	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/all"
)

// Kinds that upstream prints with name and creation time only.
var plain = []string{"clusterroles", "customresourcedefinitions", "limitranges", "roles"}

func TestEveryKindHasATable(t *testing.T) {
	t.Parallel()
	tables := printers.Tables()
	for _, r := range all.Resources(registry.Env{}) {
		table := tables[r.GVR]
		delete(tables, r.GVR)
		switch {
		case r.Verbs != nil && !slices.Contains(r.Verbs, "get"):
			continue // reviews
		case table == nil:
			if !slices.Contains(plain, r.GVR.Resource) {
				t.Errorf("%s has no table", r.GVR)
			}
			continue
		}
		for _, cells := range table.Rows(r.New()) { // an empty object must not panic
			if len(cells) != len(table.Columns) {
				t.Errorf("%s: %d cells for %d columns", r.GVR, len(cells), len(table.Columns))
			}
		}
		for _, c := range table.Columns {
			if c.Description == "" {
				t.Errorf("%s: column %s is not described", r.GVR, c.Name)
			}
		}
	}
	for gvr := range tables {
		t.Errorf("a table for %s, which does not exist", gvr)
	}
}

func cells(t *testing.T, gvr schema.GroupVersionResource, obj runtime.Object) string {
	t.Helper()
	var out []string
	for _, c := range printers.Tables()[gvr].Rows(obj)[0] {
		out = append(out, fmt.Sprint(c))
	}
	return strings.Join(out, "|")
}

func ago(d time.Duration) metav1.Time { return metav1.NewTime(time.Now().Add(-d)) }

func TestPodStatus(t *testing.T) {
	t.Parallel()
	running := corev1.ContainerStatus{Name: "a", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
	waiting := func(reason string) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: "a", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}}
	}
	ended := func(code int32, reason string) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: "a", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason}}}
	}
	restarted := func(c corev1.ContainerStatus, n int32, d time.Duration) corev1.ContainerStatus {
		c.RestartCount = n
		c.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{FinishedAt: ago(d)}
		return c
	}
	ready := []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	initialized := []corev1.PodCondition{{Type: corev1.PodInitialized, Status: corev1.ConditionTrue}}
	always := corev1.ContainerRestartPolicyAlways
	type statuses = []corev1.ContainerStatus
	for _, tt := range []struct {
		name   string
		init   []corev1.Container
		status corev1.PodStatus
		gone   bool
		want   string // READY|STATUS|RESTARTS
	}{
		{"pending", nil, corev1.PodStatus{Phase: corev1.PodPending}, false, "0/1|Pending|0"},
		{"gated", nil, corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Reason: "SchedulingGated"}}}, false, "0/1|SchedulingGated|0"},
		{"creating", nil, corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: statuses{waiting("ContainerCreating")}}, false, "0/1|ContainerCreating|0"},
		{"running", nil, corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: statuses{restarted(running, 3, 5*time.Minute)}}, false, "1/1|Running|3 (5m ago)"},
		{"back-off", nil, corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: statuses{restarted(waiting("CrashLoopBackOff"), 2, 30*time.Second)}}, false, "0/1|CrashLoopBackOff|2 (30s ago)"},
		{"pull", nil, corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: statuses{waiting("ImagePullBackOff")}}, false, "0/1|ImagePullBackOff|0"},
		{"completed", nil, corev1.PodStatus{Phase: corev1.PodSucceeded, ContainerStatuses: statuses{ended(0, "Completed")}}, false, "0/1|Completed|0"},
		{"error", nil, corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: statuses{ended(1, "Error")}}, false, "0/1|Error|0"},
		{"exit code", nil, corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: statuses{ended(3, "")}}, false, "0/1|ExitCode:3|0"},
		{"evicted", nil, corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted"}, false, "0/1|Evicted|0"},
		{"one is done, one runs", nil, corev1.PodStatus{Phase: corev1.PodRunning, Conditions: ready, ContainerStatuses: statuses{ended(0, "Completed"), running}}, false, "1/1|Running|0"},
		{"one is done, one is not ready", nil, corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: statuses{ended(0, "Completed"), running}}, false, "1/1|NotReady|0"},
		{"one is done, one failed", nil, corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: statuses{ended(0, "Completed"), ended(1, "Error")}}, false, "0/1|Error|0"},
		{"init", make([]corev1.Container, 2), corev1.PodStatus{Phase: corev1.PodPending, InitContainerStatuses: statuses{ended(0, ""), waiting("PodInitializing")}}, false, "0/1|Init:1/2|0"},
		{"init error", make([]corev1.Container, 1), corev1.PodStatus{Phase: corev1.PodPending, InitContainerStatuses: statuses{restarted(ended(1, "Error"), 1, time.Minute)}}, false, "0/1|Init:Error|1 (60s ago)"},
		{"init back-off", make([]corev1.Container, 1), corev1.PodStatus{Phase: corev1.PodPending, InitContainerStatuses: statuses{waiting("CrashLoopBackOff")}}, false, "0/1|Init:CrashLoopBackOff|0"},
		{"after init", make([]corev1.Container, 1), corev1.PodStatus{Phase: corev1.PodRunning, InitContainerStatuses: statuses{restarted(ended(0, "Completed"), 4, time.Minute)}, ContainerStatuses: statuses{running}}, false, "1/1|Running|0"},
		{"sidecar", []corev1.Container{{Name: "a", RestartPolicy: &always}}, corev1.PodStatus{Phase: corev1.PodRunning, Conditions: initialized,
			InitContainerStatuses: statuses{func() corev1.ContainerStatus {
				c := restarted(running, 1, time.Hour)
				c.Started = ptr.To(true)
				return c
			}()}, ContainerStatuses: statuses{running}}, false, "2/2|Running|1 (60m ago)"},
		{"deleted", nil, corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: statuses{running}}, true, "1/1|Terminating|0"},
		{"deleted, done", nil, corev1.PodStatus{Phase: corev1.PodSucceeded, ContainerStatuses: statuses{ended(0, "Completed")}}, true, "0/1|Completed|0"},
		{"node lost", nil, corev1.PodStatus{Phase: corev1.PodRunning, Reason: "NodeLost"}, true, "0/1|Unknown|0"},
	} {
		p := &corev1.Pod{Spec: corev1.PodSpec{InitContainers: tt.init, Containers: []corev1.Container{{Name: "a"}}}, Status: tt.status}
		if tt.gone {
			now := metav1.Now()
			p.DeletionTimestamp = &now
		}
		got := strings.Join(strings.Split(cells(t, corev1.SchemeGroupVersion.WithResource("pods"), p), "|")[1:4], "|")
		if got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

func TestCells(t *testing.T) {
	t.Parallel()
	core := corev1.SchemeGroupVersion
	meta := metav1.ObjectMeta{Name: "x", CreationTimestamp: ago(4 * time.Hour)}
	template := corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "i:1"}, {Name: "b", Image: "j"}}}}
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}}
	labelled := func(labels map[string]string) metav1.ObjectMeta {
		m := meta
		m.Labels = labels
		return m
	}
	for _, tt := range []struct {
		gvr  schema.GroupVersionResource
		obj  runtime.Object
		want string
	}{
		{core.WithResource("pods"), &corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{NodeName: "n", ReadinessGates: []corev1.PodReadinessGate{{ConditionType: "g"}}},
			Status: corev1.PodStatus{PodIPs: []corev1.PodIP{{IP: "10.42.0.5"}}}}, "x|0/0||0|4h|10.42.0.5|n|<none>|0/1"},
		{core.WithResource("services"), &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{Type: "NodePort", ClusterIPs: []string{"10.43.0.1"},
			Ports: []corev1.ServicePort{{Port: 80, NodePort: 30080, Protocol: "TCP"}, {Port: 53, Protocol: "UDP"}}, Selector: map[string]string{"app": "x"}}},
			"x|NodePort|10.43.0.1|<none>|80:30080/TCP,53/UDP|4h|app=x"},
		{core.WithResource("services"), &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{Type: "LoadBalancer"}}, "x|LoadBalancer|<none>|<pending>|<none>|4h|<none>"},
		{core.WithResource("nodes"), &corev1.Node{ObjectMeta: labelled(map[string]string{"node-role.kubernetes.io/worker": "", "kubernetes.io/role": "edge"}), Spec: corev1.NodeSpec{Unschedulable: true},
			Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: "Ready", Status: "True"}}, Addresses: []corev1.NodeAddress{{Type: "InternalIP", Address: "192.0.2.1"}},
				NodeInfo: corev1.NodeSystemInfo{KubeletVersion: "v1.37.2", KernelVersion: "6.1", Architecture: "amd64"}}},
			"x|Ready,SchedulingDisabled|edge,worker|4h|v1.37.2|192.0.2.1|<none>|<unknown>|6.1 (amd64)|<unknown>"},
		{core.WithResource("endpoints"), &corev1.Endpoints{ObjectMeta: meta, Subsets: []corev1.EndpointSubset{{ //nolint:staticcheck // still served
			Addresses: []corev1.EndpointAddress{{IP: "1.1.1.1"}, {IP: "1.1.1.2"}}, Ports: []corev1.EndpointPort{{Port: 1}, {Port: 2}}}}}, "x|1.1.1.1:1,1.1.1.2:1,1.1.1.1:2 + 1 more...|4h"},
		{core.WithResource("resourcequotas"), &corev1.ResourceQuota{ObjectMeta: meta, Status: corev1.ResourceQuotaStatus{
			Hard: corev1.ResourceList{"limits.cpu": resource.MustParse("2"), "pods": resource.MustParse("10"), "cpu": resource.MustParse("1")},
			Used: corev1.ResourceList{"pods": resource.MustParse("3")}}}, "x|cpu: 0/1, pods: 3/10|limits.cpu: 0/2|4h"},
		{core.WithResource("events"), &corev1.Event{ObjectMeta: meta, Type: "Warning", Reason: "BackOff", InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: "p", FieldPath: "f"},
			FirstTimestamp: ago(time.Hour), LastTimestamp: ago(time.Minute), Count: 7, Source: corev1.EventSource{Component: "kubelet", Host: "n"}, Message: "m\n"},
			"60s|Warning|BackOff|pod/p|f|kubelet, n|m|60m|7|x"},
		{core.WithResource("persistentvolumeclaims"), &corev1.PersistentVolumeClaim{ObjectMeta: meta, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "v", StorageClassName: ptr.To("fast")},
			Status: corev1.PersistentVolumeClaimStatus{Phase: "Bound", AccessModes: []corev1.PersistentVolumeAccessMode{"ReadWriteMany", "ReadWriteOnce"}, Capacity: corev1.ResourceList{"storage": resource.MustParse("1Gi")}}},
			"x|Bound|v|1Gi|RWO,RWX|fast|<unset>|4h|<unset>"},
		{appsv1.SchemeGroupVersion.WithResource("deployments"), &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Replicas: ptr.To[int32](3), Selector: selector, Template: template},
			Status: appsv1.DeploymentStatus{ReadyReplicas: 2, UpdatedReplicas: 3, AvailableReplicas: 1}}, "x|2/3|3|1|4h|a,b|i:1,j|app=x"},
		{batchv1.SchemeGroupVersion.WithResource("jobs"), &batchv1.Job{ObjectMeta: meta, Spec: batchv1.JobSpec{Parallelism: ptr.To[int32](2), Template: template, Selector: selector},
			Status: batchv1.JobStatus{Succeeded: 1, StartTime: ptr.To(ago(time.Hour)), CompletionTime: ptr.To(ago(30 * time.Minute)), Conditions: []batchv1.JobCondition{{Type: "Complete", Status: "True"}}}},
			"x|Complete|1/1 of 2|30m|4h|a,b|i:1,j|app=x"},
		{discoveryv1.SchemeGroupVersion.WithResource("endpointslices"), &discoveryv1.EndpointSlice{ObjectMeta: meta, AddressType: "IPv4"}, "x|IPv4|<unset>|<unset>|4h"},
		{networkingv1.SchemeGroupVersion.WithResource("ingresses"), &networkingv1.Ingress{ObjectMeta: meta, Spec: networkingv1.IngressSpec{TLS: []networkingv1.IngressTLS{{}},
			Rules: []networkingv1.IngressRule{{Host: "a"}, {Host: "b"}, {Host: "c"}, {Host: "d"}}}}, "x|<none>|a,b,c + 1 more...||80, 443|4h"},
		{storagev1.SchemeGroupVersion.WithResource("storageclasses"), &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "x", Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}}, Provisioner: "p"},
			"x (default)|p|Delete|Immediate|false|<unknown>"},
		{autoscalingv2.SchemeGroupVersion.WithResource("horizontalpodautoscalers"), &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: meta, Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{Kind: "Deployment", Name: "web"}, MaxReplicas: 5,
			Metrics: []autoscalingv2.MetricSpec{{Type: "Resource", Resource: &autoscalingv2.ResourceMetricSource{Name: "cpu", Target: autoscalingv2.MetricTarget{AverageUtilization: ptr.To[int32](80)}}}}}},
			"x|Deployment/web|cpu: <unknown>/80%|<unset>|5|0|4h"},
	} {
		if got := cells(t, tt.gvr, tt.obj); got != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", tt.gvr.Resource, got, tt.want)
		}
	}
}
