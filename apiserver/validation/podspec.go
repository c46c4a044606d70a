package validation

import (
	"fmt"
	"math"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// What the resolver of a container takes.
const (
	maxNameservers     = 3
	maxSearchPaths     = 32
	maxSearchListChars = 2048
)

// A podSpecCheck checks one pod spec. The fields after spec and meta are what
// several of its parts need to know of the whole.
type podSpecCheck struct {
	errorList
	spec *corev1.PodSpec
	meta *metav1.ObjectMeta // nil for the template of a workload

	sources   map[string]*corev1.VolumeSource // the valid volumes by name
	claims    sets.Set[string]                // names in spec.resourceClaims
	hostUsers bool                            // the pod shares the host's user namespace
}

func newPodSpecCheck(spec *corev1.PodSpec, meta *metav1.ObjectMeta) *podSpecCheck {
	c := &podSpecCheck{spec: spec, meta: meta, sources: map[string]*corev1.VolumeSource{}, claims: sets.New[string]()}
	c.hostUsers = spec.HostUsers == nil || *spec.HostUsers
	for i := range spec.ResourceClaims {
		if name := spec.ResourceClaims[i].Name; name != "" {
			c.claims.Insert(name)
		}
	}
	return c
}

// eachContainer visits init, main and ephemeral containers with their paths.
func (c *podSpecCheck) eachContainer(at *field.Path, visit func(*corev1.Container, *field.Path)) {
	for i := range c.spec.InitContainers {
		visit(&c.spec.InitContainers[i], at.Child("initContainers").Index(i))
	}
	for i := range c.spec.Containers {
		visit(&c.spec.Containers[i], at.Child("containers").Index(i))
	}
	for i := range c.spec.EphemeralContainers {
		visit((*corev1.Container)(&c.spec.EphemeralContainers[i].EphemeralContainerCommon), at.Child("ephemeralContainers").Index(i))
	}
}

// check runs all rules of the spec, in upstream's order.
func (c *podSpecCheck) check(at *field.Path) {
	s, e := c.spec, &c.errorList
	if s.TerminationGracePeriodSeconds == nil {
		c.required(at.Child("terminationGracePeriodSeconds"), "")
	}
	c.volumes(at.Child("volumes"))
	if len(s.ResourceClaims) > 0 {
		c.resourceClaims(at.Child("resourceClaims"))
	}
	c.containers(at.Child("containers"))
	if len(s.InitContainers) > 0 {
		c.initContainers(at.Child("initContainers"))
	}
	if len(s.EphemeralContainers) > 0 {
		c.ephemeralContainers(at.Child("ephemeralContainers"))
	}
	c.add(podLevel(s, c.claims, at)...)
	if s.HostNetwork {
		c.hostNetworkPorts(at.Child("containers"))
	}
	oneOfChild(e, at, "restartPolicy", s.RestartPolicy, corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever)
	oneOfChild(e, at, "dnsPolicy", s.DNSPolicy, corev1.DNSClusterFirstWithHostNet, corev1.DNSClusterFirst, corev1.DNSDefault, corev1.DNSNone)
	if len(s.NodeSelector) > 0 {
		c.add(metav1validation.ValidateLabels(s.NodeSelector, at.Child("nodeSelector"))...)
	}
	c.podSecurity(at.Child("securityContext"))
	if s.ShareProcessNamespace != nil && *s.ShareProcessNamespace && s.HostPID {
		c.invalid(at.Child("shareProcessNamespace"), true, "ShareProcessNamespace and HostPID cannot both be enabled")
	}
	if s.Affinity != nil {
		affinity(e, s.Affinity, at.Child("affinity"))
	}
	if s.DNSConfig != nil || s.DNSPolicy == corev1.DNSNone {
		c.dns(at.Child("dnsConfig"))
	}
	for i, g := range s.ReadinessGates {
		c.add(QualifiedName(string(g.ConditionType), at.Child("readinessGates").Index(i).Child("conditionType"))...)
	}
	if len(s.SchedulingGates) > 0 {
		c.schedulingGates(at.Child("schedulingGates"))
	}
	if len(s.TopologySpreadConstraints) > 0 {
		topologySpread(e, s.TopologySpreadConstraints, at.Child("topologySpreadConstraints"))
	}
	c.hostProcess(at)
	c.userNamespace(at)
	c.hostname(at)
	c.identity(at)
	if len(s.Tolerations) > 0 {
		tolerations(e, s.Tolerations, at.Child("tolerations"))
	}
	for i, a := range s.HostAliases {
		p := at.Child("hostAliases").Index(i)
		c.add(LegacyIP(p.Child("ip"), a.IP, nil)...)
		for j, name := range a.Hostnames {
			c.add(DNSSubdomain(name, p.Child("hostnames").Index(j))...)
		}
	}
	if s.PreemptionPolicy != nil {
		oneOfChild(e, at, "preemptionPolicy", *s.PreemptionPolicy, corev1.PreemptLowerPriority, corev1.PreemptNever)
	}
	if s.Overhead != nil {
		c.add(requirements(&corev1.ResourceRequirements{Limits: s.Overhead}, ContainerResourceName, nil, at.Child("overhead"))...)
	}
	c.operatingSystem(at)
	c.fileKeyVolumes(at)
}

// identity checks the names of other objects that the spec refers to.
func (c *podSpecCheck) identity(at *field.Path) {
	s := c.spec
	if s.ServiceAccountName != "" {
		invalidChild(&c.errorList, at, "serviceAccountName", s.ServiceAccountName, apivalidation.ValidateServiceAccountName(s.ServiceAccountName, false))
	}
	if s.DeprecatedServiceAccount != s.ServiceAccountName {
		c.invalid(at.Child("deprecatedServiceAccount"), s.DeprecatedServiceAccount, fmt.Sprintf("must be the same as serviceAccountName: %q", s.ServiceAccountName))
	}
	if s.NodeName != "" {
		invalidChild(&c.errorList, at, "nodeName", s.NodeName, apivalidation.NameIsDNSSubdomain(s.NodeName, false))
	}
	if d := s.ActiveDeadlineSeconds; d != nil && (*d < 1 || *d > math.MaxInt32) {
		c.invalid(at.Child("activeDeadlineSeconds"), *d, validation.InclusiveRangeError(1, math.MaxInt32))
	}
	if s.Hostname != "" {
		invalidChild(&c.errorList, at, "hostname", s.Hostname, validation.IsDNS1123Label(s.Hostname))
	}
	if s.Subdomain != "" {
		invalidChild(&c.errorList, at, "subdomain", s.Subdomain, validation.IsDNS1123Label(s.Subdomain))
	}
	if s.PriorityClassName != "" {
		invalidChild(&c.errorList, at, "priorityClassName", s.PriorityClassName, apivalidation.NameIsDNSSubdomain(s.PriorityClassName, false))
	}
	if s.RuntimeClassName != nil {
		invalidChild(&c.errorList, at, "runtimeClassName", *s.RuntimeClassName, apivalidation.NameIsDNSSubdomain(*s.RuntimeClassName, false))
	}
}

func (c *podSpecCheck) resourceClaims(at *field.Path) {
	seen := names{}
	for i, claim := range c.spec.ResourceClaims {
		p := at.Index(i)
		if c.meta != nil {
			if _, static := c.meta.Annotations[corev1.MirrorPodAnnotationKey]; static {
				c.forbidden(field.NewPath(""), "static pods do not support resource claims")
				continue
			}
		}
		switch {
		case claim.Name == "":
			c.required(p.Child("name"), "")
		case seen.seen(claim.Name):
			c.duplicate(p.Child("name"), claim.Name)
		default:
			invalidChild(&c.errorList, p, "name", claim.Name, validation.IsDNS1123Label(claim.Name))
		}
		name, template := claim.ResourceClaimName, claim.ResourceClaimTemplateName
		switch {
		case name != nil && template != nil:
			c.invalid(p, claim, "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified")
		case name == nil && template == nil:
			c.invalid(p, claim, "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`")
		}
		if name != nil {
			invalidChild(&c.errorList, p, "resourceClaimName", *name, apivalidation.NameIsDNSSubdomain(*name, false))
		}
		if template != nil {
			invalidChild(&c.errorList, p, "resourceClaimTemplateName", *template, apivalidation.NameIsDNSSubdomain(*template, false))
		}
	}
}

// hostNetworkPorts checks that a pod on the host's network uses its ports as
// they are. Templates may leave host ports out.
func (c *podSpecCheck) hostNetworkPorts(at *field.Path) {
	for i := range c.spec.Containers {
		for j, port := range c.spec.Containers[i].Ports {
			if (c.meta != nil || port.HostPort != 0) && port.HostPort != port.ContainerPort {
				c.invalid(at.Index(i).Child("ports").Index(j).Child("hostPort"), port.HostPort, "must match `containerPort` when `hostNetwork` is true")
			}
		}
	}
}

func (c *podSpecCheck) dns(at *field.Path) {
	config := c.spec.DNSConfig
	if c.spec.DNSPolicy == corev1.DNSNone {
		if config == nil {
			c.required(at, "must provide `dnsConfig` when `dnsPolicy` is None")
			return
		}
		if len(config.Nameservers) == 0 {
			c.required(at.Child("nameservers"), "must provide at least one DNS nameserver when `dnsPolicy` is None")
			return
		}
	}
	if config == nil {
		return
	}
	if len(config.Nameservers) > maxNameservers {
		c.invalid(at.Child("nameservers"), config.Nameservers, fmt.Sprintf("must not have more than %v nameservers", maxNameservers))
	}
	for i, server := range config.Nameservers {
		c.add(LegacyIP(at.Child("nameservers").Index(i), server, nil)...)
	}
	searches := at.Child("searches")
	if len(config.Searches) > maxSearchPaths {
		c.invalid(searches, config.Searches, fmt.Sprintf("must not have more than %v search paths", maxSearchPaths))
	}
	if len(strings.Join(config.Searches, " ")) > maxSearchListChars {
		c.invalid(searches, config.Searches, fmt.Sprintf("must not have more than %v characters (including spaces) in the search list", maxSearchListChars))
	}
	for i, search := range config.Searches {
		if search != "." {
			search = strings.TrimSuffix(search, ".")
			c.invalidAll(searches.Index(i), search, validation.IsDNS1123SubdomainWithUnderscore(search))
		}
	}
	for i, option := range config.Options {
		if option.Name == "" {
			c.required(at.Child("options").Index(i), "must not be empty")
		}
	}
}

func (c *podSpecCheck) schedulingGates(at *field.Path) {
	seen := names{}
	for i, gate := range c.spec.SchedulingGates {
		c.add(QualifiedName(gate.Name, at.Index(i))...)
		if seen.seen(gate.Name) {
			c.duplicate(at.Index(i), gate.Name)
		}
	}
}

// userNamespace checks what does not go with a user namespace of the pod's own.
func (c *podSpecCheck) userNamespace(at *field.Path) {
	const detail = "when `hostUsers` is false"
	if c.hostUsers {
		return
	}
	if c.spec.HostNetwork {
		c.forbidden(at.Child("hostNetwork"), detail)
	}
	if c.spec.HostPID {
		c.forbidden(at.Child("HostPID"), detail)
	}
	if c.spec.HostIPC {
		c.forbidden(at.Child("HostIPC"), detail)
	}
	c.eachContainer(at, func(ctr *corev1.Container, p *field.Path) {
		if len(ctr.VolumeDevices) > 0 {
			c.forbidden(p.Child("volumeDevices"), detail)
		}
	})
}

func (c *podSpecCheck) hostname(at *field.Path) {
	name := c.spec.HostnameOverride
	if name == nil {
		return
	}
	p := at.Child("hostnameOverride")
	if c.spec.SetHostnameAsFQDN != nil && *c.spec.SetHostnameAsFQDN {
		c.forbidden(p, "may not be specified when setHostnameAsFQDN is true")
	}
	if c.spec.HostNetwork {
		c.forbidden(p, "may not be specified when hostNetwork is true")
	}
	if len(*name) > 64 {
		c.add(field.TooLong(p, "", 64))
	}
	c.add(DNSSubdomain(*name, p)...)
}

// fileKeyVolumes checks that environment files come from emptyDir volumes (KEP-3721).
func (c *podSpecCheck) fileKeyVolumes(at *field.Path) {
	c.eachContainer(at, func(ctr *corev1.Container, p *field.Path) {
		for i := range ctr.Env {
			from := ctr.Env[i].ValueFrom
			if from == nil || from.FileKeyRef == nil {
				continue
			}
			name, volume := from.FileKeyRef.VolumeName, p.Child("env").Index(i).Child("valueFrom", "fileKeyRef", "volumeName")
			switch source := c.volumeNamed(name); {
			case source == nil:
				c.notFound(volume, name)
			case source.EmptyDir == nil:
				c.invalid(volume, name, "referenced volume must be of type emptyDir")
			}
		}
	})
}

func (c *podSpecCheck) volumeNamed(name string) *corev1.VolumeSource {
	for i := range c.spec.Volumes {
		if c.spec.Volumes[i].Name == name {
			return &c.spec.Volumes[i].VolumeSource
		}
	}
	return nil
}
