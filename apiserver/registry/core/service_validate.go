package core

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	netutils "k8s.io/utils/net"

	"github.com/periplus/periplus/apiserver/validation"
)

const (
	onlyLoadBalancer   = "may only be used when `type` is 'LoadBalancer'"
	maxAffinitySeconds = 86400
)

// validateService checks a Service; old is nil on create. Values that are
// allocated after validation (cluster IPs, node ports, the health check's node
// port) are checked only where given.
func validateService(svc, old *corev1.Service) field.ErrorList {
	var errs field.ErrorList
	spec, at := &svc.Spec, field.NewPath("spec")
	hints, hinted := svc.Annotations[corev1.DeprecatedAnnotationTopologyAwareHints]
	mode, moded := svc.Annotations[corev1.AnnotationTopologyMode]
	if hinted && moded && hints != mode {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "annotations").Key(corev1.AnnotationTopologyMode), mode,
			fmt.Sprintf("must match annotations[%s] when both are specified", corev1.DeprecatedAnnotationTopologyAwareHints)))
	}
	if len(spec.Ports) == 0 && !headless(svc) && spec.Type != corev1.ServiceTypeExternalName {
		errs = append(errs, field.Required(at.Child("ports"), ""))
	}
	errs = append(errs, serviceType(svc, at)...)
	errs = append(errs, servicePorts(svc, at.Child("ports"))...)
	if spec.Selector != nil {
		errs = append(errs, metav1validation.ValidateLabels(spec.Selector, at.Child("selector"))...)
	}
	errs = append(errs, sessionAffinity(spec, at)...)
	errs = append(errs, clusterIPFields(svc, old)...)

	var before []string
	if old != nil {
		before = old.Spec.ExternalIPs
	}
	for i, ip := range spec.ExternalIPs {
		if bad := validation.LegacyIP(at.Child("externalIPs").Index(i), ip, before); len(bad) > 0 {
			errs = append(errs, bad...)
		} else {
			errs = append(errs, validation.EndpointIP(ip, at.Child("externalIPs").Index(i))...)
		}
	}
	switch spec.Type {
	case corev1.ServiceTypeClusterIP, corev1.ServiceTypeExternalName, corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeNodePort:
	default:
		errs = append(errs, field.NotSupported(at.Child("type"), spec.Type, []corev1.ServiceType{
			corev1.ServiceTypeClusterIP, corev1.ServiceTypeExternalName, corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeNodePort}))
	}
	errs = append(errs, loadBalancerFields(svc, old, at)...)
	errs = append(errs, trafficPolicies(svc, at)...)
	return errs
}

func serviceType(svc *corev1.Service, at *field.Path) field.ErrorList {
	spec := &svc.Spec
	var errs field.ErrorList
	switch spec.Type {
	case corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeNodePort:
		if headless(svc) {
			errs = append(errs, field.Invalid(at.Child("clusterIPs").Index(0), spec.ClusterIPs[0], fmt.Sprintf("may not be set to 'None' for %s services", spec.Type)))
		}
	case corev1.ServiceTypeExternalName:
		const not = "may not be set for ExternalName services"
		if len(spec.ClusterIPs) > 0 {
			errs = append(errs, field.Forbidden(at.Child("clusterIPs"), not))
		}
		if len(spec.IPFamilies) > 0 {
			errs = append(errs, field.Forbidden(at.Child("ipFamilies"), not))
		}
		if spec.IPFamilyPolicy != nil {
			errs = append(errs, field.Forbidden(at.Child("ipFamilyPolicy"), not))
		}
		if name := strings.TrimSuffix(spec.ExternalName, "."); name == "" {
			errs = append(errs, field.Required(at.Child("externalName"), ""))
		} else {
			errs = append(errs, validation.DNSSubdomain(name, at.Child("externalName"))...)
		}
	}
	return errs
}

func servicePorts(svc *corev1.Service, at *field.Path) field.ErrorList {
	type nodePort struct {
		protocol corev1.Protocol
		port     int32
	}
	var errs field.ErrorList
	named, ports, nodePorts := map[string]bool{}, map[nodePort]bool{}, map[nodePort]bool{}
	for i := range svc.Spec.Ports {
		port, p := &svc.Spec.Ports[i], at.Index(i)
		switch {
		case port.Name != "":
			errs = append(errs, validation.DNSLabel(port.Name, p.Child("name"))...)
			if named[port.Name] {
				errs = append(errs, field.Duplicate(p.Child("name"), port.Name))
			}
			named[port.Name] = true
		case len(svc.Spec.Ports) > 1:
			errs = append(errs, field.Required(p.Child("name"), ""))
		}
		for _, m := range utilvalidation.IsValidPortNum(int(port.Port)) {
			errs = append(errs, field.Invalid(p.Child("port"), port.Port, m))
		}
		errs = append(errs, validation.Protocol(port.Protocol, p.Child("protocol"))...)
		errs = append(errs, validation.PortNumOrName(port.TargetPort, p.Child("targetPort"))...)
		if port.AppProtocol != nil {
			errs = append(errs, validation.QualifiedName(*port.AppProtocol, p.Child("appProtocol"))...)
		}
		if port.NodePort != 0 {
			if svc.Spec.Type == corev1.ServiceTypeClusterIP {
				errs = append(errs, field.Forbidden(p.Child("nodePort"), "may not be used when `type` is 'ClusterIP'"))
			}
			key := nodePort{port.Protocol, port.NodePort}
			if nodePorts[key] {
				errs = append(errs, field.Duplicate(p.Child("nodePort"), port.NodePort))
			}
			nodePorts[key] = true
		}
		key := nodePort{port.Protocol, port.Port}
		if ports[key] {
			errs = append(errs, field.Duplicate(p, corev1.ServicePort{Protocol: port.Protocol, Port: port.Port}))
		}
		ports[key] = true
	}
	return errs
}

func sessionAffinity(spec *corev1.ServiceSpec, at *field.Path) field.ErrorList {
	config := at.Child("sessionAffinityConfig")
	const when = "when session affinity type is ClientIP"
	switch spec.SessionAffinity {
	case "":
		return field.ErrorList{field.Required(at.Child("sessionAffinity"), "")}
	case corev1.ServiceAffinityNone:
		if spec.SessionAffinityConfig != nil {
			return field.ErrorList{field.Forbidden(config, "must not be set when session affinity is None")}
		}
	case corev1.ServiceAffinityClientIP:
		timeout := config.Child("clientIP", "timeoutSeconds")
		switch c := spec.SessionAffinityConfig; {
		case c == nil:
			return field.ErrorList{field.Required(config, when)}
		case c.ClientIP == nil:
			return field.ErrorList{field.Required(config.Child("clientIP"), when)}
		case c.ClientIP.TimeoutSeconds == nil:
			return field.ErrorList{field.Required(timeout, when)}
		case *c.ClientIP.TimeoutSeconds <= 0 || *c.ClientIP.TimeoutSeconds > maxAffinitySeconds:
			return field.ErrorList{field.Invalid(timeout, c.ClientIP.TimeoutSeconds, fmt.Sprintf("must be greater than 0 and less than %d", maxAffinitySeconds))}
		}
	default:
		return field.ErrorList{field.NotSupported(at.Child("sessionAffinity"), spec.SessionAffinity, []corev1.ServiceAffinity{corev1.ServiceAffinityClientIP, corev1.ServiceAffinityNone})}
	}
	return nil
}

func loadBalancerFields(svc, old *corev1.Service, at *field.Path) field.ErrorList {
	spec, balancer := &svc.Spec, svc.Spec.Type == corev1.ServiceTypeLoadBalancer
	var errs field.ErrorList
	if len(spec.LoadBalancerSourceRanges) > 0 {
		p := at.Child("LoadBalancerSourceRanges")
		if !balancer {
			errs = append(errs, field.Forbidden(p, onlyLoadBalancer))
		}
		var before []string
		if old != nil {
			for _, cidr := range old.Spec.LoadBalancerSourceRanges {
				before = append(before, strings.TrimSpace(cidr))
			}
		}
		for i, cidr := range spec.LoadBalancerSourceRanges {
			errs = append(errs, validation.LegacyCIDR(p.Index(i), strings.TrimSpace(cidr), before)...)
		}
	} else if value, ok := svc.Annotations[corev1.AnnotationLoadBalancerSourceRangesKey]; ok {
		p := field.NewPath("metadata", "annotations").Key(corev1.AnnotationLoadBalancerSourceRangesKey)
		if !balancer {
			errs = append(errs, field.Forbidden(p, onlyLoadBalancer))
		}
		unchanged := old != nil && old.Annotations[corev1.AnnotationLoadBalancerSourceRangesKey] == value
		if value = strings.TrimSpace(value); value != "" && !unchanged {
			for cidr := range strings.SplitSeq(value, ",") {
				errs = append(errs, validation.LegacyCIDR(p, strings.TrimSpace(cidr), nil)...)
			}
		}
	}
	switch allocate := spec.AllocateLoadBalancerNodePorts; {
	case allocate != nil && !balancer:
		errs = append(errs, field.Forbidden(at.Child("allocateLoadBalancerNodePorts"), onlyLoadBalancer))
	case allocate == nil && balancer:
		errs = append(errs, field.Required(field.NewPath("allocateLoadBalancerNodePorts"), ""))
	}
	if class := spec.LoadBalancerClass; class != nil {
		if balancer {
			errs = append(errs, validation.QualifiedName(*class, at.Child("loadBalancerClass"))...)
		} else {
			errs = append(errs, field.Forbidden(at.Child("loadBalancerClass"), onlyLoadBalancer))
		}
	}
	return errs
}

func trafficPolicies(svc *corev1.Service, at *field.Path) field.ErrorList {
	spec := &svc.Spec
	var errs field.ErrorList
	external := at.Child("externalTrafficPolicy")
	switch policy := spec.ExternalTrafficPolicy; {
	case !externallyAccessible(svc):
		if policy != "" {
			errs = append(errs, field.Invalid(external, policy, "may only be set for externally-accessible services"))
		}
	case policy == "":
		errs = append(errs, field.Required(external, ""))
	case policy != corev1.ServiceExternalTrafficPolicyCluster && policy != corev1.ServiceExternalTrafficPolicyLocal:
		errs = append(errs, field.NotSupported(external, policy, []corev1.ServiceExternalTrafficPolicy{
			corev1.ServiceExternalTrafficPolicyCluster, corev1.ServiceExternalTrafficPolicyLocal}))
	}
	if port := spec.HealthCheckNodePort; port != 0 {
		p := at.Child("healthCheckNodePort")
		if !needsHealthCheckPort(svc) {
			errs = append(errs, field.Invalid(p, port, "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"))
		} else {
			for _, m := range utilvalidation.IsValidPortNum(int(port)) {
				errs = append(errs, field.Invalid(p, port, m))
			}
		}
	}
	internal := at.Child("internalTrafficPolicy")
	switch policy := spec.InternalTrafficPolicy; {
	case policy == nil:
		if spec.Type != corev1.ServiceTypeExternalName && spec.Type != "" {
			errs = append(errs, field.Required(internal, ""))
		}
	case *policy != corev1.ServiceInternalTrafficPolicyCluster && *policy != corev1.ServiceInternalTrafficPolicyLocal:
		errs = append(errs, field.NotSupported(internal, *policy, []corev1.ServiceInternalTrafficPolicy{
			corev1.ServiceInternalTrafficPolicyCluster, corev1.ServiceInternalTrafficPolicyLocal}))
	}
	distributions := []string{corev1.ServiceTrafficDistributionPreferClose, corev1.ServiceTrafficDistributionPreferSameZone, corev1.ServiceTrafficDistributionPreferSameNode}
	if t := spec.TrafficDistribution; t != nil && !slices.Contains(distributions, *t) {
		errs = append(errs, field.NotSupported(at.Child("trafficDistribution"), *t, distributions))
	}
	return errs
}

// clusterIPFields checks clusterIP, clusterIPs, ipFamilies and ipFamilyPolicy
// among themselves.
func clusterIPFields(svc, old *corev1.Service) field.ErrorList {
	spec := &svc.Spec
	if spec.Type == corev1.ServiceTypeExternalName {
		return nil
	}
	at := field.NewPath("spec")
	ips, families := at.Child("clusterIPs"), at.Child("ipFamilies")
	var errs field.ErrorList
	switch {
	case spec.ClusterIP == "" && len(spec.ClusterIPs) > 0:
		errs = append(errs, field.Invalid(ips, spec.ClusterIPs, "must be empty when `clusterIP` is not specified"))
	case spec.ClusterIP != "" && len(spec.ClusterIPs) == 0:
		errs = append(errs, field.Required(ips, ""))
	case spec.ClusterIP != "" && spec.ClusterIPs[0] != spec.ClusterIP:
		errs = append(errs, field.Invalid(ips, spec.ClusterIPs, "first value must match `clusterIP`"))
	}
	for i, f := range spec.IPFamilies {
		if f != corev1.IPv4Protocol && f != corev1.IPv6Protocol {
			errs = append(errs, field.NotSupported(families.Index(i), f, []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}))
		}
		if slices.Contains(spec.IPFamilies[:i], f) {
			errs = append(errs, field.Duplicate(families.Index(i), f))
		}
	}
	if p := spec.IPFamilyPolicy; p != nil {
		policies := []corev1.IPFamilyPolicy{corev1.IPFamilyPolicyPreferDualStack, corev1.IPFamilyPolicyRequireDualStack, corev1.IPFamilyPolicySingleStack}
		if !slices.Contains(policies, *p) {
			errs = append(errs, field.NotSupported(at.Child("ipFamilyPolicy"), p, policies))
		}
	}
	var before []string
	if old != nil {
		before = old.Spec.ClusterIPs
	}
	invalid := false
	for i, ip := range spec.ClusterIPs {
		if i == 0 && ip == corev1.ClusterIPNone {
			if len(spec.ClusterIPs) > 1 {
				invalid = true
				errs = append(errs, field.Invalid(ips, spec.ClusterIPs, "'None' must be the first and only value"))
			}
			continue
		}
		bad := validation.LegacyIP(ips.Index(i), ip, before)
		invalid = invalid || len(bad) > 0
		errs = append(errs, bad...)
	}
	if len(spec.ClusterIPs) > 2 {
		errs = append(errs, field.Invalid(ips, spec.ClusterIPs, "may only hold up to 2 values"))
	}
	if invalid {
		return errs
	}
	if dual, err := netutils.IsDualStackIPStrings(spec.ClusterIPs); len(spec.ClusterIPs) > 1 && (err != nil || !dual) {
		errs = append(errs, field.Invalid(ips, spec.ClusterIPs, "may specify no more than one IP for each IP family"))
	}
	if headless(svc) {
		return errs
	}
	for i := range min(len(spec.ClusterIPs), len(spec.IPFamilies)) {
		ip, family := spec.ClusterIPs[i], spec.IPFamilies[i]
		if is6 := netutils.IsIPv6String(ip); is6 && family == corev1.IPv4Protocol || !is6 && family == corev1.IPv6Protocol {
			errs = append(errs, field.Invalid(ips.Index(i), ip, fmt.Sprintf("expected an %s value as indicated by `ipFamilies[%v]`", family, i)))
		}
	}
	return errs
}
