package inject

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/periplus/periplus/mesh"
)

// Names of what is added.
const (
	initName  = "istio-init"
	proxyName = "istio-proxy"
)

// An Image is what the added containers run.
type Image struct {
	// Name of the image.
	Name string
	// Init is the command of istio-init, Proxy that of istio-proxy. Wait succeeds when
	// the proxy is ready.
	Init, Proxy, Wait []string
}

// addSidecar adds all that a pod of the mesh has to p.
func addSidecar(p *corev1.Pod, namespace string, image Image) error {
	o, err := readOptions(p.Annotations)
	if err != nil {
		return err
	}
	probers := ""
	if o.rewriteProbes {
		if probers, err = rewriteProbes(&p.Spec); err != nil {
			return fmt.Errorf("injection failed: probes: %w", err)
		}
	}
	owner := owner(p)
	labels := p.Labels
	if labels == nil {
		labels = map[string]string{}
	}
	w := mesh.WorkloadOf(owner, namespace, labels)
	setDefault(labels, mesh.LabelTLS, mesh.TLSModeIstio)
	setDefault(labels, mesh.LabelCanonicalName, label(w.CanonicalName))
	setDefault(labels, mesh.LabelCanonicalRevision, w.CanonicalRevision)
	p.Labels = labels

	annotations := p.Annotations
	if annotations == nil {
		annotations = map[string]string{}
	}
	if len(p.Spec.Containers) > 0 {
		setDefault(annotations, "kubectl.kubernetes.io/default-container", p.Spec.Containers[0].Name)
		setDefault(annotations, "kubectl.kubernetes.io/default-logs-container", p.Spec.Containers[0].Name)
	}
	setDefault(annotations, "prometheus.io/path", "/stats/prometheus")
	setDefault(annotations, "prometheus.io/port", strconv.Itoa(mesh.StatusPort))
	setDefault(annotations, "prometheus.io/scrape", "true")
	status, err := json.Marshal(map[string]any{
		"initContainers": []string{initName, proxyName}, "containers": nil,
		"volumes": []string{volumeToken, volumeRoot, volumeInfo}, "imagePullSecrets": nil, "revision": "default",
	})
	if err != nil {
		return err
	}
	annotations[mesh.AnnotationStatus] = string(status)
	p.Annotations = annotations

	// The sidecar comes first: init containers of the application are in the mesh too.
	added := []corev1.Container{initContainer(image, &o), proxyContainer(p, image, &o, owner, probers)}
	p.Spec.InitContainers = append(added, p.Spec.InitContainers...)
	p.Spec.Volumes = append(p.Spec.Volumes, volumes()...)
	return nil
}

// initContainer puts the redirect rules into the pod's network namespace.
func initContainer(image Image, o *options) corev1.Container {
	own := []string{strconv.Itoa(mesh.MetricsPort), strconv.Itoa(mesh.HealthPort), strconv.Itoa(mesh.StatusPort)}
	return corev1.Container{
		Name: initName, Image: image.Name, Command: image.Init,
		Args: []string{
			"-p", strconv.Itoa(mesh.OutboundPort), "-z", strconv.Itoa(mesh.InboundPort), "-u", strconv.Itoa(mesh.ProxyID), "-m", "REDIRECT",
			"-i", o.includeRanges, "-x", o.excludeRanges, "-b", o.includeInbound,
			"-d", strings.Join(append(own, list(o.excludeInbound)...), ","), "-o", o.excludeOutbound,
		},
		ImagePullPolicy: corev1.PullIfNotPresent,
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: ptr(false), Privileged: ptr(false), ReadOnlyRootFilesystem: ptr(false),
			RunAsGroup: ptr(int64(0)), RunAsUser: ptr(int64(0)), RunAsNonRoot: ptr(false),
			Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"NET_ADMIN"}, Drop: []corev1.Capability{"ALL"}},
		},
		Resources:                *o.resources.DeepCopy(),
		TerminationMessagePath:   corev1.TerminationMessagePathDefault,
		TerminationMessagePolicy: corev1.TerminationMessageReadFile,
	}
}

// proxyContainer is the native sidecar: it starts before the application and ends after it.
func proxyContainer(p *corev1.Pod, image Image, o *options, owner, probers string) corev1.Container {
	field := func(name, path string) corev1.EnvVar {
		return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: path}}}
	}
	env := []corev1.EnvVar{
		field("POD_NAME", "metadata.name"), field("POD_NAMESPACE", "metadata.namespace"),
		field("INSTANCE_IP", "status.podIP"), field("SERVICE_ACCOUNT", "spec.serviceAccountName"), field("HOST_IP", "status.hostIP"),
		{Name: "ISTIO_META_WORKLOAD_NAME", Value: owner},
		{Name: "ISTIO_META_CLUSTER_ID", Value: mesh.ClusterID},
		{Name: "CA_ADDR", Value: mesh.ControlPlane + "." + mesh.RootNamespace + ".svc:" + strconv.Itoa(mesh.DiscoveryPort)},
	}
	if probers != "" {
		env = append(env, corev1.EnvVar{Name: "ISTIO_KUBE_APP_PROBERS", Value: probers})
	}
	args := []string{"--log-level", o.logLevel}
	if o.accessLog != "" {
		args = append(args, "--access-log", o.accessLog)
	}
	ready := corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz/ready", Port: intstr.FromInt32(mesh.HealthPort), Scheme: corev1.URISchemeHTTP}}
	return corev1.Container{
		Name: proxyName, Image: image.Name, Command: image.Proxy, Args: args, Env: env,
		RestartPolicy:   ptr(corev1.ContainerRestartPolicyAlways),
		ImagePullPolicy: corev1.PullIfNotPresent,
		Ports:           []corev1.ContainerPort{{Name: "http-envoy-prom", ContainerPort: mesh.MetricsPort, Protocol: corev1.ProtocolTCP}},
		// A request would come too early and be repeated a second later: this one waits.
		StartupProbe:   &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: image.Wait}}, PeriodSeconds: 1, TimeoutSeconds: 10, FailureThreshold: 600, SuccessThreshold: 1},
		ReadinessProbe: &corev1.Probe{ProbeHandler: ready, PeriodSeconds: 15, TimeoutSeconds: 3, FailureThreshold: 4, SuccessThreshold: 1},
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: ptr(false), Privileged: ptr(false), ReadOnlyRootFilesystem: ptr(true),
			RunAsGroup: ptr(int64(mesh.ProxyID)), RunAsUser: ptr(int64(mesh.ProxyID)), RunAsNonRoot: ptr(true),
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
		Resources:                *o.resources.DeepCopy(),
		VolumeMounts:             mounts(),
		TerminationMessagePath:   corev1.TerminationMessagePathDefault,
		TerminationMessagePolicy: corev1.TerminationMessageReadFile,
	}
}

// owner names the workload of a pod that may have no name yet.
func owner(p *corev1.Pod) string {
	name := p.Name
	if name == "" {
		name = strings.TrimSuffix(p.GenerateName, "-")
	}
	if c := metav1.GetControllerOfNoCopy(p); c != nil {
		return mesh.OwnerName(c.Kind, c.Name, name)
	}
	return name
}

// label makes a name fit into a label's value.
func label(v string) string {
	if len(v) > 63 {
		v = v[:63]
	}
	return strings.Trim(v, "-._")
}

func setDefault(m map[string]string, key, value string) {
	if _, ok := m[key]; !ok {
		m[key] = value
	}
}

func ptr[T any](v T) *T { return &v }
