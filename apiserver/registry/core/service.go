package core

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

var serviceHalves = kind.Split(func(obj *corev1.Service) (*corev1.ServiceSpec, *corev1.ServiceStatus) {
	return &obj.Spec, &obj.Status
})

// services returns the resource of Services. Its hooks hand out cluster IPs and
// node ports from what env says.
func services(env registry.Env) *registry.Resource {
	s := registry.Funcs[*corev1.Service]{
		DefaultFunc: defaultService,
		PrepareCreate: func(_ context.Context, svc *corev1.Service) {
			svc.Status = corev1.ServiceStatus{}
			syncClusterIPs(svc, nil)
		},
		PrepareUpdate:  prepareServiceUpdate,
		ValidateCreate: func(_ context.Context, svc *corev1.Service) field.ErrorList { return validateService(svc, nil) },
		ValidateChange: func(_ context.Context, svc, old *corev1.Service) field.ErrorList {
			return validateServiceUpdate(svc, old)
		},
		WarningsFunc: serviceWarnings,
		Name:         apivalidation.NameIsDNSLabel,
		Fixed:        registry.Traits{CreateOnUpdate: true},
	}
	status := serviceHalves.Status()
	status.DefaultFunc = defaultService
	status.ValidateChange = func(_ context.Context, svc, old *corev1.Service) field.ErrorList {
		return validateLoadBalancerStatus(svc, old)
	}
	return &registry.Resource{
		GVR:              version.WithResource("services"),
		Kind:             "Service",
		Singular:         "service",
		ShortNames:       []string{"svc"},
		Categories:       []string{"all"},
		Namespaced:       true,
		New:              kind.Make[corev1.Service],
		NewList:          kind.Make[corev1.ServiceList],
		StoragePrefix:    "services/specs",
		Strategy:         s,
		Status:           status,
		SelectableFields: []string{"spec.clusterIP", "spec.type"},
		Fields: func(obj runtime.Object) fields.Set {
			svc := obj.(*corev1.Service)
			return fields.Set{"spec.clusterIP": svc.Spec.ClusterIP, "spec.type": string(svc.Spec.Type)}
		},
		Hooks: newServiceAllocator(env).hooks(),
	}
}

func defaultService(svc *corev1.Service) {
	spec := &svc.Spec
	if spec.SessionAffinity == "" {
		spec.SessionAffinity = corev1.ServiceAffinityNone
	}
	switch spec.SessionAffinity {
	case corev1.ServiceAffinityNone:
		spec.SessionAffinityConfig = nil
	case corev1.ServiceAffinityClientIP:
		if c := spec.SessionAffinityConfig; c == nil || c.ClientIP == nil || c.ClientIP.TimeoutSeconds == nil {
			timeout := corev1.DefaultClientIPServiceAffinitySeconds
			spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: &timeout}}
		}
	}
	if spec.Type == "" {
		spec.Type = corev1.ServiceTypeClusterIP
	}
	for i := range spec.Ports {
		port := &spec.Ports[i]
		if port.Protocol == "" {
			port.Protocol = corev1.ProtocolTCP
		}
		if port.TargetPort == intstr.FromInt32(0) || port.TargetPort == intstr.FromString("") {
			port.TargetPort = intstr.FromInt32(port.Port)
		}
	}
	if externallyAccessible(svc) && spec.ExternalTrafficPolicy == "" {
		spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyCluster
	}
	if spec.InternalTrafficPolicy == nil && spec.Type != corev1.ServiceTypeExternalName {
		policy := corev1.ServiceInternalTrafficPolicyCluster
		spec.InternalTrafficPolicy = &policy
	}
	if spec.Type != corev1.ServiceTypeLoadBalancer {
		return
	}
	if spec.AllocateLoadBalancerNodePorts == nil {
		yes := true
		spec.AllocateLoadBalancerNodePorts = &yes
	}
	for i := range svc.Status.LoadBalancer.Ingress {
		if ingress := &svc.Status.LoadBalancer.Ingress[i]; ingress.IP != "" && ingress.IPMode == nil {
			mode := corev1.LoadBalancerIPModeVIP
			ingress.IPMode = &mode
		}
	}
}

func externallyAccessible(svc *corev1.Service) bool {
	switch svc.Spec.Type {
	case corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeNodePort:
		return true
	case corev1.ServiceTypeClusterIP:
		return len(svc.Spec.ExternalIPs) > 0
	default:
		return false
	}
}

// needsHealthCheckPort reports that nodes without endpoints must be told apart.
func needsHealthCheckPort(svc *corev1.Service) bool {
	return svc.Spec.Type == corev1.ServiceTypeLoadBalancer && svc.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal
}

func hasNodePorts(svc *corev1.Service) bool {
	return svc.Spec.Type == corev1.ServiceTypeNodePort || svc.Spec.Type == corev1.ServiceTypeLoadBalancer
}

func hasClusterIP(svc *corev1.Service) bool { return svc.Spec.Type != corev1.ServiceTypeExternalName }

func headless(svc *corev1.Service) bool {
	return len(svc.Spec.ClusterIPs) == 1 && svc.Spec.ClusterIPs[0] == corev1.ClusterIPNone
}

func serviceWarnings(_ context.Context, svc, _ *corev1.Service) []string {
	var warnings []string
	spec, at := &svc.Spec, field.NewPath("spec")
	if _, ok := svc.Annotations[corev1.DeprecatedAnnotationTopologyAwareHints]; ok {
		warnings = append(warnings, fmt.Sprintf("annotation %s is deprecated, please use %s instead", corev1.DeprecatedAnnotationTopologyAwareHints, corev1.AnnotationTopologyMode))
	}
	if spec.ClusterIP != "" && spec.ClusterIP != corev1.ClusterIPNone {
		for i, ip := range spec.ClusterIPs {
			warnings = append(warnings, utilvalidation.GetWarningsForIP(at.Child("clusterIPs").Index(i), ip)...)
		}
	}
	if headless(svc) {
		if spec.LoadBalancerIP != "" {
			warnings = append(warnings, "spec.loadBalancerIP is ignored for headless services")
		}
		if len(spec.ExternalIPs) > 0 {
			warnings = append(warnings, "spec.externalIPs is ignored for headless services")
		}
		if spec.SessionAffinity != corev1.ServiceAffinityNone {
			warnings = append(warnings, "spec.SessionAffinity is ignored for headless services")
		}
	}
	for i, ip := range spec.ExternalIPs {
		warnings = append(warnings, utilvalidation.GetWarningsForIP(at.Child("externalIPs").Index(i), ip)...)
	}
	external := spec.Type == corev1.ServiceTypeExternalName
	if len(spec.ExternalIPs) > 0 && !headless(svc) && !external {
		warnings = append(warnings, "spec.externalIPs is deprecated and may no longer be implemented in some clusters")
	}
	if ip := svc.Spec.LoadBalancerIP; ip != "" {
		warnings = append(warnings, utilvalidation.GetWarningsForIP(at.Child("loadBalancerIP"), ip)...)
	}
	for i, cidr := range spec.LoadBalancerSourceRanges {
		warnings = append(warnings, utilvalidation.GetWarningsForCIDR(at.Child("loadBalancerSourceRanges").Index(i), cidr)...)
	}
	if external && len(spec.ExternalIPs) > 0 {
		warnings = append(warnings, `spec.externalIPs is ignored when spec.type is "ExternalName"`)
	}
	if !external && spec.ExternalName != "" {
		warnings = append(warnings, `spec.externalName is ignored when spec.type is not "ExternalName"`)
	}
	if t := spec.TrafficDistribution; t != nil && *t == corev1.ServiceTrafficDistributionPreferClose {
		warnings = append(warnings, fmt.Sprintf("spec.trafficDistribution: %q is deprecated; use %q", *t, corev1.ServiceTrafficDistributionPreferSameZone))
	}
	return warnings
}
