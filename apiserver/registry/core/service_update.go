package core

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	netutils "k8s.io/utils/net"

	"github.com/periplus/periplus/apiserver/validation"
)

const fixed = "may not change once set"

// validateServiceUpdate checks a change: primary addresses and families are
// fixed, secondary ones can be added and, with SingleStack, released.
func validateServiceUpdate(svc, old *corev1.Service) field.ErrorList {
	var errs field.ErrorList
	at := field.NewPath("spec")
	if hasClusterIP(svc) && hasClusterIP(old) {
		errs = append(errs, clusterIPChange(svc, old, at)...)
		errs = append(errs, familyChange(svc, old, at)...)
	}
	if old.Spec.Type == corev1.ServiceTypeLoadBalancer && svc.Spec.Type == corev1.ServiceTypeLoadBalancer &&
		!validation.Equal(svc.Spec.LoadBalancerClass, old.Spec.LoadBalancerClass) {
		errs = append(errs, field.Invalid(at.Child("loadBalancerClass"), svc.Spec.LoadBalancerClass, fixed))
	}
	if needsHealthCheckPort(old) && needsHealthCheckPort(svc) && svc.Spec.HealthCheckNodePort != old.Spec.HealthCheckNodePort {
		errs = append(errs, field.Forbidden(at.Child("healthCheckNodePort"), "field is immutable"))
	}
	return append(errs, validateService(svc, old)...)
}

func singleStack(svc *corev1.Service) bool {
	return svc.Spec.IPFamilyPolicy != nil && *svc.Spec.IPFamilyPolicy == corev1.IPFamilyPolicySingleStack
}

func clusterIPChange(svc, old *corev1.Service, at *field.Path) field.ErrorList {
	if headless(svc) && headless(old) {
		return nil
	}
	before, now, p := old.Spec.ClusterIPs, svc.Spec.ClusterIPs, at.Child("clusterIPs")
	var errs field.ErrorList
	for i := range min(len(before), len(now)) {
		if before[i] != now[i] {
			errs = append(errs, field.Invalid(p.Index(i), now, fixed))
		}
		if len(before) != len(now) {
			break // only the primary address is compared
		}
	}
	if len(before) > len(now) {
		switch {
		case len(now) == 0:
			errs = append(errs, field.Invalid(p.Index(0), now, "primary clusterIP can not be unset"))
		case !singleStack(svc):
			errs = append(errs, field.Invalid(at.Child("ipFamilyPolicy"), svc.Spec.IPFamilyPolicy, "must be set to 'SingleStack' when releasing the secondary clusterIP"))
		}
	}
	return errs
}

func familyChange(svc, old *corev1.Service, at *field.Path) field.ErrorList {
	if headless(svc) || headless(old) {
		return nil
	}
	before, now, p := old.Spec.IPFamilies, svc.Spec.IPFamilies, at.Child("ipFamilies").Index(0)
	var errs field.ErrorList
	switch {
	case len(before) == len(now):
		if !slices.Equal(before, now) {
			errs = append(errs, field.Invalid(p, now, fixed))
		}
	case len(before) > len(now):
		if len(svc.Spec.ClusterIPs) == 0 {
			errs = append(errs, field.Invalid(p, now, "primary ipFamily can not be unset"))
		}
		if len(now) > 0 && now[0] != before[0] {
			errs = append(errs, field.Invalid(p, svc.Spec.ClusterIPs, fixed))
		}
		if len(now) == 1 && !singleStack(svc) {
			errs = append(errs, field.Invalid(at.Child("ipFamilyPolicy"), svc.Spec.IPFamilyPolicy, "must be set to 'SingleStack' when releasing the secondary ipFamily"))
		}
	case len(before) > 0 && now[0] != before[0]:
		errs = append(errs, field.Invalid(p, svc.Spec.ClusterIPs, fixed))
	}
	return errs
}

func validateLoadBalancerStatus(svc, old *corev1.Service) field.ErrorList {
	at := field.NewPath("status", "loadBalancer", "ingress")
	ingresses := svc.Status.LoadBalancer.Ingress
	if svc.Spec.Type != corev1.ServiceTypeLoadBalancer {
		if len(ingresses) > 0 {
			return field.ErrorList{field.Forbidden(at, "may only be used when `spec.type` is 'LoadBalancer'")}
		}
		return nil
	}
	var before []string
	for _, ingress := range old.Status.LoadBalancer.Ingress {
		if ingress.IP != "" {
			before = append(before, ingress.IP)
		}
	}
	var errs field.ErrorList
	for i, ingress := range ingresses {
		p := at.Index(i)
		if ingress.IP != "" {
			errs = append(errs, validation.LegacyIP(p.Child("ip"), ingress.IP, before)...)
		}
		switch mode := ingress.IPMode; {
		case mode == nil && ingress.IP != "":
			errs = append(errs, field.Required(p.Child("ipMode"), "must be specified when `ip` is set"))
		case mode != nil && ingress.IP == "":
			errs = append(errs, field.Forbidden(p.Child("ipMode"), "may not be specified when `ip` is not set"))
		case mode != nil && *mode != corev1.LoadBalancerIPModeVIP && *mode != corev1.LoadBalancerIPModeProxy:
			errs = append(errs, field.NotSupported(p.Child("ipMode"), mode, []corev1.LoadBalancerIPMode{corev1.LoadBalancerIPModeProxy, corev1.LoadBalancerIPModeVIP}))
		}
		if name := ingress.Hostname; name != "" {
			for _, m := range utilvalidation.IsDNS1123Subdomain(name) {
				errs = append(errs, field.Invalid(p.Child("hostname"), name, m))
			}
			if netutils.ParseIPSloppy(name) != nil {
				errs = append(errs, field.Invalid(p.Child("hostname"), name, "must be a DNS name, not an IP address"))
			}
		}
	}
	return errs
}
