package validation_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/defaults"
	"github.com/periplus/periplus/apiserver/validation"
)

func ptr[T any](v T) *T { return &v }

// newPod returns a valid pod as it reaches validation.
func newPod() *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default"},
		Spec: corev1.PodSpec{
			ServiceAccountName: "default",
			Containers:         []corev1.Container{{Name: "main", Image: "nginx"}},
		},
	}
	defaults.Pod(pod)
	return pod
}

// check compares errors with lines of "path: Type: …"; a line need only be the
// beginning of its error.
func check(t *testing.T, errs field.ErrorList, want ...string) {
	t.Helper()
	for i, err := range errs {
		if i >= len(want) {
			t.Errorf("unexpected: %v", err)
		} else if !strings.HasPrefix(err.Error(), want[i]) {
			t.Errorf("got  %v\nwant %v", err, want[i])
		}
	}
	if len(errs) < len(want) {
		t.Errorf("missing: %v", want[len(errs):])
	}
}

func TestPod(t *testing.T) {
	t.Parallel()
	q := resource.MustParse
	tests := []struct {
		name   string
		change func(*corev1.Pod)
		want   []string
	}{
		{"valid", func(*corev1.Pod) {}, nil},
		{"no containers", func(p *corev1.Pod) { p.Spec.Containers = nil }, []string{"spec.containers: Required value"}},
		{"container without name and image", func(p *corev1.Pod) { p.Spec.Containers[0].Name, p.Spec.Containers[0].Image = "", "" },
			[]string{"spec.containers[0].name: Required value", "spec.containers[0].image: Required value"}},
		{"bad container name", func(p *corev1.Pod) { p.Spec.Containers[0].Name = "Main" },
			[]string{`spec.containers[0].name: Invalid value: "Main": a lowercase RFC 1123 label must consist of`}},
		{"padded image", func(p *corev1.Pod) { p.Spec.Containers[0].Image = " nginx" },
			[]string{`spec.containers[0].image: Invalid value: " nginx": must not have leading or trailing whitespace`}},
		{"two containers of one name", func(p *corev1.Pod) { p.Spec.Containers = append(p.Spec.Containers, p.Spec.Containers[0]) },
			[]string{`spec.containers[1].name: Duplicate value: "main"`}},
		{"init container with the name of a container", func(p *corev1.Pod) { p.Spec.InitContainers = []corev1.Container{p.Spec.Containers[0]} },
			[]string{`spec.initContainers[0].name: Duplicate value: "main"`}},
		{"probe of an init container", func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Name: "i", Image: "i", ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(80)}}}}}
		}, []string{"spec.initContainers[0].readinessProbe: Forbidden: may not be set for init containers without restartPolicy=Always"}},
		{"probe of a sidecar", func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Name: "i", Image: "i", RestartPolicy: ptr(corev1.ContainerRestartPolicyAlways),
				ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(80)}}}}}
		}, nil},
		{"ephemeral container", func(p *corev1.Pod) {
			p.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug", Image: "busybox"}}}
		}, []string{"spec.ephemeralContainers: Forbidden: cannot be set on create"}},
		{"env", func(p *corev1.Pod) {
			p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "a=b"}, {Name: "B", ValueFrom: &corev1.EnvVarSource{}},
				{Name: "C", Value: "x", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}},
				{Name: "D", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.phase"}}},
				{Name: "E", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels['app']"}}},
				{Name: "F", ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.gpu"}}}}
		}, []string{
			`spec.containers[0].env[0].name: Invalid value: "a=b"`,
			"spec.containers[0].env[1].valueFrom: Invalid value: \"\": must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`",
			"spec.containers[0].env[2].valueFrom: Invalid value: \"\": may not be specified when `value` is not empty",
			`spec.containers[0].env[3].valueFrom.fieldRef.fieldPath: Unsupported value: "status.phase": supported values: "metadata.name",`,
			`spec.containers[0].env[5].valueFrom.resourceFieldRef.resource: Unsupported value: "limits.gpu": supported values: "limits.cpu", "limits.ephemeral-storage"`,
		}},
		{"ports", func(p *corev1.Pod) {
			p.Spec.Containers[0].Ports = []corev1.ContainerPort{{}, {ContainerPort: 70000}, {Name: "http", ContainerPort: 80}, {Name: "http", ContainerPort: 81, Protocol: "ICMP"}}
		}, []string{
			"spec.containers[0].ports[0].containerPort: Required value",
			"spec.containers[0].ports[1].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive",
			`spec.containers[0].ports[3].name: Duplicate value: "http"`,
			`spec.containers[0].ports[3].protocol: Unsupported value: "ICMP": supported values: "SCTP", "TCP", "UDP"`,
		}},
		{"host port twice", func(p *corev1.Pod) {
			p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 80}, {ContainerPort: 81, HostPort: 80}}
		}, []string{`spec.containers[0].ports[1].hostPort: Duplicate value: "TCP//80"`}},
		{"request above limit", func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": q("2")}, Limits: corev1.ResourceList{"cpu": q("1")}}
		}, []string{`spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1`}},
		{"unknown resource", func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"gpu": q("1"), "memory": q("-1")}
		}, []string{
			`spec.containers[0].resources.requests[gpu]: Invalid value: "gpu": must be a standard resource type or fully qualified`,
			`spec.containers[0].resources.requests[gpu]: Invalid value: "gpu": must be a standard resource for containers`,
			`spec.containers[0].resources.requests[memory]: Invalid value: "-1": must be greater than or equal to 0`,
		}},
		{"extended resource without limit", func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"example.com/gpu": q("1.5")}
		}, []string{
			`spec.containers[0].resources.requests[example.com/gpu]: Invalid value: "1500m": must be an integer`,
			"spec.containers[0].resources.limits: Required value: Limit must be set for non overcommitable resources",
		}},
		{"mount without volume", func(p *corev1.Pod) {
			p.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/a"}, {Name: "data", MountPath: "/a", SubPath: "../x"}}
		}, []string{
			`spec.containers[0].volumeMounts[0].name: Not found: "data"`,
			`spec.containers[0].volumeMounts[1].name: Not found: "data"`,
			`spec.containers[0].volumeMounts[1].mountPath: Invalid value: "/a": must be unique`,
			`spec.containers[0].volumeMounts.subPath: Invalid value: "../x": must not contain '..'`,
		}},
		{"volumes", func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{
				{Name: "a", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}, HostPath: &corev1.HostPathVolumeSource{Path: "/"}}},
				{Name: "b", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{DefaultMode: ptr[int32](0o1000), Items: []corev1.KeyToPath{{Key: "k", Path: "..x"}}}}},
				{Name: "c", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/x/../y", Type: ptr(corev1.HostPathType("Pipe"))}}},
				{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{}}},
			}
		}, []string{
			"spec.volumes[0].hostPath: Forbidden: may not specify more than 1 volume type",
			"spec.volumes[1].configMap.name: Required value",
			"spec.volumes[1].configMap.defaultMode: Invalid value: 512: must be a number between 0 and 0777 (octal), both inclusive",
			`spec.volumes[1].configMap.items[0].path: Invalid value: "..x": must not start with '..'`,
			`spec.volumes[2].hostPath.path: Invalid value: "/x/../y": must not contain '..'`,
			`spec.volumes[2].hostPath.type: Unsupported value: "Pipe"`,
			"spec.volumes[3].persistentVolumeClaim.claimName: Required value",
			"spec.volumes[3].name: Required value",
		}},
		{"projected token", func(p *corev1.Pod) {
			p.Spec.ServiceAccountName, p.Spec.DeprecatedServiceAccount = "", ""
			p.Spec.Volumes = []corev1.Volume{{Name: "token", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
				{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{ExpirationSeconds: ptr[int64](1), Path: "token"}}}}}}}
		}, []string{
			"spec.volumes[0].projected.sources[0].serviceAccountToken.expirationSeconds: Invalid value: 1: may not specify a duration less than 10 minutes",
			"spec.volumes[0].projected.sources[0].serviceAccountToken: Forbidden: must not be specified when serviceAccountName is not set",
		}},
		{"two handlers", func(p *corev1.Pod) {
			p.Spec.Containers[0].LivenessProbe = &corev1.Probe{SuccessThreshold: 2, ProbeHandler: corev1.ProbeHandler{
				Exec: &corev1.ExecAction{}, HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromString("web")}}}
		}, []string{
			"spec.containers[0].livenessProbe.exec.command: Required value",
			"spec.containers[0].livenessProbe.httpGet: Forbidden: may not specify more than 1 handler type",
			"spec.containers[0].livenessProbe.successThreshold: Invalid value: 2: must be 1",
		}},
		{"no handler", func(p *corev1.Pod) { p.Spec.Containers[0].ReadinessProbe = &corev1.Probe{} },
			[]string{"spec.containers[0].readinessProbe: Required value: must specify a handler type"}},
		{"restart policy", func(p *corev1.Pod) { p.Spec.RestartPolicy = "Sometimes" },
			[]string{`spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "OnFailure", "Never"`}},
		{"dns none", func(p *corev1.Pod) { p.Spec.DNSPolicy = corev1.DNSNone },
			[]string{"spec.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None"}},
		{"tolerations", func(p *corev1.Pod) {
			p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpEqual}, {Key: "a", Operator: corev1.TolerationOpExists, Value: "x", TolerationSeconds: ptr[int64](1)}, {Key: "b", Operator: "Lt", Value: "1"}}
		}, []string{
			"spec.tolerations[0].operator: Invalid value: \"Equal\": operator must be Exists when `key` is empty",
			"spec.tolerations[1].effect: Invalid value: \"\": effect must be 'NoExecute' when `tolerationSeconds` is set",
			"spec.tolerations[1].operator: Invalid value: \"x\": value must be empty when `operator` is 'Exists'",
			`spec.tolerations[2].operator: Unsupported value: "Lt": supported values: "Equal", "Exists", "Lt", "Gt"`,
		}},
		{"affinity", func(p *corev1.Pod) {
			p.Spec.Affinity = &corev1.Affinity{
				NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
					{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpIn}}}}}},
				PodAntiAffinity: &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 101}}},
			}
		}, []string{
			"spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
			"spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: Invalid value: 101: must be in the range 1-100",
			"spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTerm.topologyKey: Required value: can not be empty",
			"spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTerm.topologyKey: Invalid value: \"\"",
			"spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTerm.topologyKey: Invalid value: \"\"",
		}},
		{"topology spread", func(p *corev1.Pod) {
			p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{}, {MaxSkew: 1, TopologyKey: "zone", WhenUnsatisfiable: corev1.ScheduleAnyway, MinDomains: ptr[int32](2)}}
		}, []string{
			"spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero",
			"spec.topologySpreadConstraints[0].topologyKey: Required value: can not be empty",
			`spec.topologySpreadConstraints[0].whenUnsatisfiable: Unsupported value: "": supported values: "DoNotSchedule", "ScheduleAnyway"`,
			"spec.topologySpreadConstraints[1].minDomains: Invalid value: 2: can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ScheduleAnyway",
		}},
		{"security context", func(p *corev1.Pod) {
			p.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsUser: ptr[int64](-1), Sysctls: []corev1.Sysctl{{Name: "net.ipv4.ip_forward"}, {Name: "Bad"}}, SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeLocalhost}}
			p.Spec.HostNetwork = true
			p.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: ptr(true), AllowPrivilegeEscalation: ptr(false)}
		}, []string{
			"spec.containers[0].securityContext: Invalid value: ",
			"spec.securityContext.runAsUser: Invalid value: -1: must be between 0 and 2147483647, inclusive",
			"spec.securityContext.sysctls[0].name: Invalid value: \"net.ipv4.ip_forward\": may not be specified when 'hostNetwork' is true",
			`spec.securityContext.sysctls[1].name: Invalid value: "Bad": must have at most 253 characters and match regex ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$`,
			"spec.securityContext.seccompProfile.localhostProfile: Required value: must be set when seccomp type is Localhost",
		}},
		{"gated and bound", func(p *corev1.Pod) {
			p.Spec.NodeName, p.Spec.SchedulingGates = "n", []corev1.PodSchedulingGate{{Name: "a"}}
		}, []string{"spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared"}},
		{"windows and linux", func(p *corev1.Pod) {
			p.Spec.OS = &corev1.PodOS{Name: corev1.Windows}
			p.Spec.HostPID = true
			p.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{RunAsUser: ptr[int64](1)}
		}, []string{
			"spec.hostPID: Forbidden: cannot be set for a windows pod",
			"spec.containers[0].securityContext.runAsUser: Forbidden: cannot be set for a windows pod",
		}},
		{"user namespace", func(p *corev1.Pod) { p.Spec.HostUsers, p.Spec.HostIPC = ptr(false), true },
			[]string{"spec.HostIPC: Forbidden: when `hostUsers` is false"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			pod := newPod()
			test.change(pod)
			defaults.Pod(pod)
			check(t, validation.Pod(pod), test.want...)
		})
	}
}

func TestPodUpdate(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		old  func(*corev1.Pod)
		now  func(*corev1.Pod)
		want []string
	}{
		{"labels", nil, func(p *corev1.Pod) { p.Labels = map[string]string{"a": "b"} }, nil},
		{"image", nil, func(p *corev1.Pod) { p.Spec.Containers[0].Image = "nginx:2" }, nil},
		{"empty image", nil, func(p *corev1.Pod) { p.Spec.Containers[0].Image = "" }, []string{"spec.containers[0].image: Required value"}},
		{"command", nil, func(p *corev1.Pod) { p.Spec.Containers[0].Command = []string{"x"} },
			[]string{"spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)\n"}},
		{"one more container", nil, func(p *corev1.Pod) {
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "b", Image: "b"})
		}, []string{"spec.containers: Forbidden: pod updates may not add or remove containers"}},
		{"deadline set", nil, func(p *corev1.Pod) { p.Spec.ActiveDeadlineSeconds = ptr[int64](5) }, nil},
		{"deadline raised", func(p *corev1.Pod) { p.Spec.ActiveDeadlineSeconds = ptr[int64](5) }, func(p *corev1.Pod) { p.Spec.ActiveDeadlineSeconds = ptr[int64](6) },
			[]string{"spec.activeDeadlineSeconds: Invalid value: 6: must be less than or equal to previous value"}},
		{"toleration added", nil, func(p *corev1.Pod) {
			p.Spec.Tolerations = []corev1.Toleration{{Key: "a", Operator: corev1.TolerationOpExists}}
		}, nil},
		{"toleration removed", func(p *corev1.Pod) {
			p.Spec.Tolerations = []corev1.Toleration{{Key: "a", Operator: corev1.TolerationOpExists}}
		}, nil, []string{"spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds"}},
		{"gate removed", func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "a"}} }, nil, nil},
		{"gate added", nil, func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "a"}} },
			[]string{"spec.schedulingGates[0].name: Forbidden: only deletion is allowed, but found new scheduling gate 'a'"}},
		{"selector of a gated pod", func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "a"}} }, func(p *corev1.Pod) {
			p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "a"}}
			p.Spec.NodeSelector = map[string]string{"zone": "x"}
		}, nil},
		{"mirror annotation", nil, func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"} },
			[]string{
				"metadata.annotations[kubernetes.io/config.mirror]: Forbidden: may not add mirror pod annotation",
				"metadata.annotations[kubernetes.io/config.mirror]: Invalid value: \"x\": must set spec.nodeName if mirror pod annotation is set",
			}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			old, now := newPod(), newPod()
			if test.old != nil {
				test.old(old)
			}
			if test.now != nil {
				test.now(now)
			}
			defaults.Pod(now)
			check(t, validation.PodUpdate(now, old), test.want...)
		})
	}
}

func TestPodStatusUpdate(t *testing.T) {
	t.Parallel()
	terminated := []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}}}
	running := []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	tests := []struct {
		name     string
		old, now func(*corev1.Pod)
		want     []string
	}{
		{"restart", func(p *corev1.Pod) { p.Status.ContainerStatuses = terminated }, func(p *corev1.Pod) { p.Status.ContainerStatuses = running }, nil},
		{"restart of what never restarts",
			func(p *corev1.Pod) {
				p.Spec.RestartPolicy, p.Status.ContainerStatuses = corev1.RestartPolicyNever, terminated
			},
			func(p *corev1.Pod) {
				p.Spec.RestartPolicy, p.Status.ContainerStatuses = corev1.RestartPolicyNever, running
			},
			[]string{"status.containerStatuses[0].state: Forbidden: may not be transitioned to non-terminated state"}},
		{"class", nil, func(p *corev1.Pod) { p.Status.QOSClass = corev1.PodQOSGuaranteed }, []string{`status.qosClass: Invalid value: "Guaranteed": field is immutable`}},
		{"addresses", nil, func(p *corev1.Pod) {
			p.Status.PodIP, p.Status.PodIPs = "10.0.0.1", []corev1.PodIP{{IP: "10.0.0.2"}, {IP: "10.0.0.3"}}
		},
			[]string{
				"status.podIPs: Invalid value: [{\"ip\":\"10.0.0.2\"},{\"ip\":\"10.0.0.3\"}]: may specify no more than one IP for each IP family",
				"status.podIPs[0].ip: Invalid value: \"10.0.0.2\": must be equal to `podIP`",
			}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			old, now := newPod(), newPod()
			if test.old != nil {
				test.old(old)
			}
			test.now(now)
			check(t, validation.PodStatusUpdate(now, old), test.want...)
		})
	}
}

func TestQOSClass(t *testing.T) {
	t.Parallel()
	list := func(cpu, memory string) corev1.ResourceList {
		l := corev1.ResourceList{}
		if cpu != "" {
			l[corev1.ResourceCPU] = resource.MustParse(cpu)
		}
		if memory != "" {
			l[corev1.ResourceMemory] = resource.MustParse(memory)
		}
		return l
	}
	both := corev1.ResourceRequirements{Requests: list("1", "1Gi"), Limits: list("1", "1Gi")}
	tests := []struct {
		name       string
		containers []corev1.ResourceRequirements
		want       corev1.PodQOSClass
	}{
		{"nothing", []corev1.ResourceRequirements{{}}, corev1.PodQOSBestEffort},
		{"all limited", []corev1.ResourceRequirements{both, both}, corev1.PodQOSGuaranteed},
		{"one without", []corev1.ResourceRequirements{both, {}}, corev1.PodQOSBurstable},
		{"request only", []corev1.ResourceRequirements{{Requests: list("1", "")}}, corev1.PodQOSBurstable},
		{"no memory limit", []corev1.ResourceRequirements{{Requests: list("1", ""), Limits: list("1", "")}}, corev1.PodQOSBurstable},
		{"storage only", []corev1.ResourceRequirements{{Requests: corev1.ResourceList{"ephemeral-storage": resource.MustParse("1Gi")}}}, corev1.PodQOSBestEffort},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			pod := &corev1.Pod{}
			for _, r := range test.containers {
				pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Resources: r})
			}
			if got := validation.QOSClass(pod); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}
