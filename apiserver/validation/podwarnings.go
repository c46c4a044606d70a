package validation

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// PodWarnings returns what upstream warns of in a pod (at is nil) or in the template
// at the given path of a workload.
func PodWarnings(spec *corev1.PodSpec, meta *metav1.ObjectMeta, at *field.Path) []string {
	w := podWarner{spec: spec, meta: meta, at: at}
	w.placement()
	w.annotations()
	w.volumes()
	w.references()
	w.wholeBytes(spec.Overhead, byteResources, func() *field.Path { return w.path("overhead") })
	w.containers()
	w.ports()
	if grace := spec.TerminationGracePeriodSeconds; grace != nil && *grace < 0 {
		w.say(w.path("terminationGracePeriodSeconds"), "must be >= 0; negative values are invalid and will be treated as 1")
	}
	w.addresses()
	return w.list
}

// TemplateWarnings is PodWarnings of the template of a workload.
func TemplateWarnings(t *corev1.PodTemplateSpec, at *field.Path) []string {
	return PodWarnings(&t.Spec, &t.ObjectMeta, at)
}

// WorkloadWarnings is TemplateWarnings of a new workload after which pods are named.
func WorkloadWarnings(name string, t *corev1.PodTemplateSpec, at *field.Path) []string {
	var list []string
	if bad := validation.IsDNS1123Label(name); len(bad) > 0 {
		list = []string{fmt.Sprintf("metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; a DNS label is recommended: %v", bad)}
	}
	return append(list, TemplateWarnings(t, at)...)
}

type podWarner struct {
	warner
	spec *corev1.PodSpec
	meta *metav1.ObjectMeta
	at   *field.Path // nil for a pod
}

// path returns the path of a field of the spec.
func (w *podWarner) path(names ...string) *field.Path {
	p := w.at.Child("spec")
	for _, name := range names {
		p = p.Child(name)
	}
	return p
}

func (w *podWarner) annotation(key string) *field.Path {
	return w.at.Child("metadata", "annotations").Key(key)
}

func (w *podWarner) placement() {
	const required, preferred = "requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"
	for key := range w.spec.NodeSelector {
		if text := deprecatedLabels[key]; text != "" {
			w.say(w.path("nodeSelector").Key(key), "%s", text)
		}
	}
	for i := range w.spec.TopologySpreadConstraints {
		t := &w.spec.TopologySpreadConstraints[i]
		if text := deprecatedLabels[t.TopologyKey]; text != "" {
			w.say(w.path("topologySpreadConstraints").Index(i).Child("topologyKey"), "%s is %s", t.TopologyKey, text)
		}
		if t.LabelSelector == nil {
			w.noSelector(w.path("topologySpreadConstraints").Index(i))
		}
	}
	a := w.spec.Affinity
	if a == nil {
		return
	}
	if n := a.NodeAffinity; n != nil {
		p := w.path("affinity", "nodeAffinity")
		if r := n.RequiredDuringSchedulingIgnoredDuringExecution; r != nil {
			for i := range r.NodeSelectorTerms {
				w.list = append(w.list, NodeSelectorTermWarnings(&r.NodeSelectorTerms[i], false, p.Child(required, "nodeSelectorTerms").Index(i))...)
			}
		}
		for i := range n.PreferredDuringSchedulingIgnoredDuringExecution {
			t := &n.PreferredDuringSchedulingIgnoredDuringExecution[i].Preference
			w.list = append(w.list, NodeSelectorTermWarnings(t, true, p.Child(preferred).Index(i).Child("preference"))...)
		}
	}
	pods := func(kind string, hard []corev1.PodAffinityTerm, soft []corev1.WeightedPodAffinityTerm) {
		for i := range hard {
			if hard[i].LabelSelector == nil {
				w.noSelector(w.path("affinity", kind, required).Index(i))
			}
		}
		for i := range soft {
			if soft[i].PodAffinityTerm.LabelSelector == nil {
				w.noSelector(w.path("affinity", kind, preferred).Index(i).Child("podAffinityTerm"))
			}
		}
	}
	if p := a.PodAffinity; p != nil {
		pods("podAffinity", p.RequiredDuringSchedulingIgnoredDuringExecution, p.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if p := a.PodAntiAffinity; p != nil {
		pods("podAntiAffinity", p.RequiredDuringSchedulingIgnoredDuringExecution, p.PreferredDuringSchedulingIgnoredDuringExecution)
	}
}

func (w *podWarner) noSelector(at *field.Path) {
	w.say(at.Child("labelSelector"), "a null labelSelector results in matching no pod")
}

// noFunction are annotations that once meant something.
var noFunction = []struct{ key, text string }{
	{"scheduler.alpha.kubernetes.io/critical-pod", `non-functional in v1.16+; use the "priorityClassName" field instead`},
	{"security.alpha.kubernetes.io/sysctls", `non-functional in v1.11+; use the "sysctls" field instead`},
	{"security.alpha.kubernetes.io/unsafe-sysctls", `non-functional in v1.11+; use the "sysctls" field instead`},
}

const seccompNoFunction = `non-functional in v1.27+; use the "seccompProfile" field instead`

// AppArmorDeprecated is said of AppArmor's annotations.
const AppArmorDeprecated = `deprecated since v1.30; use the "appArmorProfile" field instead`

func (w *podWarner) annotations() {
	if len(w.meta.Annotations) == 0 {
		return
	}
	for _, a := range noFunction {
		if _, ok := w.meta.Annotations[a.key]; ok {
			w.say(w.annotation(a.key), "%s", a.text)
		}
	}
	var whole *corev1.AppArmorProfile
	if s := w.spec.SecurityContext; s != nil {
		whole = s.AppArmorProfile
	}
	if s := w.spec.SecurityContext; s == nil || s.SeccompProfile == nil {
		if _, ok := w.meta.Annotations[corev1.SeccompPodAnnotationKey]; ok {
			w.say(w.annotation(corev1.SeccompPodAnnotationKey), seccompNoFunction)
		}
	}
	w.each(func(c *corev1.Container, _ func() *field.Path) {
		s := c.SecurityContext
		key := corev1.SeccompContainerAnnotationKeyPrefix + c.Name
		if _, ok := w.meta.Annotations[key]; ok && (s == nil || s.SeccompProfile == nil) {
			w.say(w.annotation(key), seccompNoFunction)
		}
		// For pods this is said where the annotation becomes a field.
		key = corev1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix + c.Name
		if value, ok := w.meta.Annotations[key]; ok && w.at != nil && (s == nil || s.AppArmorProfile == nil) {
			if whole == nil || !Equal(whole, AppArmorFromAnnotation(value)) {
				w.say(w.annotation(key), AppArmorDeprecated)
			}
		}
	})
}

// AppArmorFromAnnotation returns the profile that an annotation names, nil for
// what names none.
func AppArmorFromAnnotation(value string) *corev1.AppArmorProfile {
	switch file, local := strings.CutPrefix(value, corev1.DeprecatedAppArmorBetaProfileNamePrefix); {
	case value == corev1.DeprecatedAppArmorBetaProfileNameUnconfined:
		return &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeUnconfined}
	case value == corev1.DeprecatedAppArmorBetaProfileRuntimeDefault:
		return &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeRuntimeDefault}
	case local && file != "":
		return &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeLocalhost, LocalhostProfile: &file}
	}
	return nil
}

func (w *podWarner) volumes() {
	for i := range w.spec.Volumes {
		v := &w.spec.Volumes[i]
		at := func(name string) *field.Path { return w.path("volumes").Index(i).Child(name) }
		switch {
		case v.PhotonPersistentDisk != nil:
			w.say(at("photonPersistentDisk"), "deprecated in v1.11, non-functional in v1.16+")
		case v.GitRepo != nil:
			w.say(at("gitRepo"), "deprecated in v1.11, and disabled by default in v1.33+")
		case v.ScaleIO != nil:
			w.say(at("scaleIO"), "deprecated in v1.16, non-functional in v1.22+")
		case v.Flocker != nil:
			w.say(at("flocker"), "deprecated in v1.22, non-functional in v1.25+")
		case v.StorageOS != nil:
			w.say(at("storageOS"), "deprecated in v1.22, non-functional in v1.25+")
		case v.Quobyte != nil:
			w.say(at("quobyte"), "deprecated in v1.22, non-functional in v1.25+")
		case v.Glusterfs != nil:
			w.say(at("glusterfs"), "deprecated in v1.25, non-functional in v1.26+")
		case v.CephFS != nil:
			w.say(at("cephfs"), "deprecated in v1.28, non-functional in v1.31+")
		case v.RBD != nil:
			w.say(at("rbd"), "deprecated in v1.28, non-functional in v1.31+")
		case v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate != nil:
			w.list = append(w.list, ClaimSpecWarnings(&v.Ephemeral.VolumeClaimTemplate.Spec, at("ephemeral").Child("volumeClaimTemplate", "spec"))...)
		case v.ConfigMap != nil:
			l := layout{w: &w.warner, volume: v.Name, kind: fmt.Sprintf("ConfigMap %q", v.ConfigMap.Name)}
			l.keys(v.ConfigMap.Items, "")
		case v.Secret != nil:
			l := layout{w: &w.warner, volume: v.Name, kind: fmt.Sprintf("Secret %q", v.Secret.SecretName)}
			l.keys(v.Secret.Items, "")
		case v.DownwardAPI != nil:
			l := layout{w: &w.warner, volume: v.Name, kind: "DownwardAPI"}
			l.downward(v.DownwardAPI.Items, "")
		case v.Projected != nil:
			w.projected(v.Name, v.Projected.Sources)
		}
	}
}

func (w *podWarner) projected(volume string, sources []corev1.VolumeProjection) {
	l := layout{w: &w.warner, volume: volume, kind: "Projected"}
	for i := range sources {
		switch s := &sources[i]; {
		case *s == (corev1.VolumeProjection{}):
			w.list = append(w.list, fmt.Sprintf("volume %q (Projected) has no sources provided", volume))
		case s.ConfigMap != nil && s.ConfigMap.Items != nil:
			l.keys(s.ConfigMap.Items, fmt.Sprintf("ConfigMap %q", s.ConfigMap.Name))
		case s.Secret != nil && s.Secret.Items != nil:
			l.keys(s.Secret.Items, fmt.Sprintf("Secret %q", s.Secret.Name))
		case s.DownwardAPI != nil && s.DownwardAPI.Items != nil:
			l.downward(s.DownwardAPI.Items, "DownwardAPI")
		case s.ServiceAccountToken != nil:
			l.add(s.ServiceAccountToken.Path, "ServiceAccountToken")
		case s.ClusterTrustBundle != nil:
			name := s.ClusterTrustBundle.SignerName
			if s.ClusterTrustBundle.Name != nil {
				name = s.ClusterTrustBundle.Name
			}
			if name != nil {
				l.add(s.ClusterTrustBundle.Path, fmt.Sprintf("ClusterTrustBundle %q", *name))
			}
		case s.PodCertificate != nil:
			for _, file := range []filePath{
				{s.PodCertificate.CertificateChainPath, "PodCertificate chain"},
				{s.PodCertificate.KeyPath, "PodCertificate key"},
				{s.PodCertificate.CredentialBundlePath, "PodCertificate credential bundle"},
			} {
				if file.path != "" {
					l.add(file.path, file.source)
				}
			}
		}
	}
}

// references are the lists that name other things.
func (w *podWarner) references() {
	aliases, secrets := w.spec.HostAliases, w.spec.ImagePullSecrets
	for i := range aliases {
		for j := range i {
			if aliases[j].IP == aliases[i].IP {
				w.say(w.path("hostAliases").Index(i).Child("ip"), "duplicate ip %q", aliases[i].IP)
				break
			}
		}
	}
	for i := range secrets {
		for j := range i {
			if secrets[j].Name == secrets[i].Name {
				w.say(w.path("imagePullSecrets").Index(i).Child("name"), "duplicate name %q", secrets[i].Name)
				break
			}
		}
		if secrets[i].Name == "" {
			w.say(w.path("imagePullSecrets").Index(i).Child("name"), `invalid empty name ""`)
		}
	}
}

func (w *podWarner) addresses() {
	if dns := w.spec.DNSConfig; dns != nil {
		for i, ip := range dns.Nameservers {
			w.list = append(w.list, validation.GetWarningsForIP(w.path("dnsConfig", "nameservers").Index(i), ip)...)
		}
	}
	for i := range w.spec.HostAliases {
		w.list = append(w.list, validation.GetWarningsForIP(w.path("hostAliases").Index(i).Child("ip"), w.spec.HostAliases[i].IP)...)
	}
}

// each visits all containers; the path is made when asked for.
func (w *podWarner) each(visit func(c *corev1.Container, at func() *field.Path)) {
	for i := range w.spec.InitContainers {
		visit(&w.spec.InitContainers[i], func() *field.Path { return w.path("initContainers").Index(i) })
	}
	for i := range w.spec.Containers {
		visit(&w.spec.Containers[i], func() *field.Path { return w.path("containers").Index(i) })
	}
	for i := range w.spec.EphemeralContainers {
		visit((*corev1.Container)(&w.spec.EphemeralContainers[i].EphemeralContainerCommon), func() *field.Path { return w.path("ephemeralContainers").Index(i) })
	}
}

func (w *podWarner) containers() {
	w.each(func(c *corev1.Container, at func() *field.Path) {
		w.wholeBytes(c.Resources.Limits, byteResources, func() *field.Path { return at().Child("resources", "limits") })
		w.wholeBytes(c.Resources.Requests, byteResources, func() *field.Path { return at().Child("resources", "requests") })
		w.environment(c.Env, at)
	})
}

// environment warns of variables that are set twice, unless the second value
// contains the first.
func (w *podWarner) environment(env []corev1.EnvVar, at func() *field.Path) {
	if len(env) < 2 {
		return
	}
	seen := make(map[string]bool, len(env))
	for i := range env {
		e := &env[i]
		if !seen[e.Name] {
			seen[e.Name] = true
			continue
		}
		ref := "$(" + e.Name + ")"
		if e.ValueFrom != nil || e.Value == ref || !strings.Contains(e.Value, ref) {
			w.say(at().Child("env").Index(i), "hides previous definition of %q, which may be dropped when using apply", e.Name)
		}
	}
}
