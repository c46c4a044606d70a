package core

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/validation"
)

// familiesLocked fills ipFamilyPolicy and ipFamilies from what the client gave
// and what the cluster has.
func (a *serviceAllocator) familiesLocked(svc, old *corev1.Service) error {
	spec := &svc.Spec
	if spec.Type == corev1.ServiceTypeExternalName || old != nil && unchangedPreferDual(svc, old) {
		return nil
	}
	selectorless := spec.ClusterIP == corev1.ClusterIPNone && len(spec.Selector) == 0
	if spec.IPFamilyPolicy == nil {
		policy := corev1.IPFamilyPolicySingleStack
		switch {
		case old != nil && old.Spec.IPFamilyPolicy != nil:
			policy = *old.Spec.IPFamilyPolicy
		case selectorless:
			policy = corev1.IPFamilyPolicyRequireDualStack
		}
		spec.IPFamilyPolicy = &policy
	}
	if errs := clusterIPFields(svc, old); len(errs) > 0 {
		return invalidService(svc, errs...)
	}
	single := *spec.IPFamilyPolicy == corev1.IPFamilyPolicySingleStack
	if errs := a.stackChange(svc, old, single); len(errs) > 0 {
		return invalidService(svc, errs...)
	}
	if errs := a.familiesOfAddresses(svc); len(errs) > 0 {
		return invalidService(svc, errs...)
	}
	if selectorless {
		// Its endpoints are made by hand, so that the cluster's own families do not matter.
		if len(spec.IPFamilies) == 0 {
			spec.IPFamilies = []corev1.IPFamily{a.defaultFamily()}
		}
		if len(spec.IPFamilies) < 2 && !single {
			spec.IPFamilies = append(spec.IPFamilies, otherFamily(spec.IPFamilies[0]))
		}
		return nil
	}
	if len(a.order) == 0 {
		return apierrors.NewInternalError(fmt.Errorf("no range of cluster IPs is configured"))
	}
	var errs field.ErrorList
	at := field.NewPath("spec")
	if *spec.IPFamilyPolicy == corev1.IPFamilyPolicyRequireDualStack && len(a.order) < 2 {
		errs = append(errs, field.Invalid(at.Child("ipFamilyPolicy"), spec.IPFamilyPolicy, "this cluster is not configured for dual-stack services"))
	}
	for i, f := range spec.IPFamilies {
		if a.ips[f] == nil {
			errs = append(errs, field.Invalid(at.Child("ipFamilies").Index(i), f, "not configured on this cluster"))
		}
	}
	if len(errs) > 0 {
		return invalidService(svc, errs...)
	}
	if len(spec.IPFamilies) == 0 {
		spec.IPFamilies = []corev1.IPFamily{a.defaultFamily()}
	}
	if !single && len(spec.IPFamilies) == 1 && len(a.order) == 2 {
		spec.IPFamilies = append(spec.IPFamilies, otherFamily(spec.IPFamilies[0]))
	}
	return nil
}

func (a *serviceAllocator) defaultFamily() corev1.IPFamily {
	if len(a.order) == 0 {
		return corev1.IPv4Protocol
	}
	return a.order[0]
}

func otherFamily(f corev1.IPFamily) corev1.IPFamily {
	if f == corev1.IPv4Protocol {
		return corev1.IPv6Protocol
	}
	return corev1.IPv4Protocol
}

// unchangedPreferDual keeps a PreferDualStack service as it is: it is not
// upgraded by an update that says nothing of addresses.
func unchangedPreferDual(svc, old *corev1.Service) bool {
	prefer := func(p *corev1.IPFamilyPolicy) bool { return *p == corev1.IPFamilyPolicyPreferDualStack }
	now, before := svc.Spec.IPFamilyPolicy, old.Spec.IPFamilyPolicy
	return now != nil && prefer(now) && (before == nil || prefer(before)) && svc.Spec.Type == old.Spec.Type &&
		validation.Equal(svc.Spec.ClusterIPs, old.Spec.ClusterIPs) && svc.Spec.ClusterIP == old.Spec.ClusterIP &&
		validation.Equal(svc.Spec.IPFamilies, old.Spec.IPFamilies)
}

// stackChange releases the second address and family of a service that turns
// to SingleStack, and refuses two of either in a SingleStack service.
func (a *serviceAllocator) stackChange(svc, old *corev1.Service, single bool) field.ErrorList {
	spec, policy := &svc.Spec, field.NewPath("spec", "ipFamilyPolicy")
	var errs field.ErrorList
	if old != nil {
		if single {
			if len(spec.ClusterIPs) > 1 && sameClusterIPs(svc, old) {
				spec.ClusterIPs = slices.Clone(spec.ClusterIPs[:1])
			}
			if len(spec.IPFamilies) > 1 && slices.Equal(spec.IPFamilies, old.Spec.IPFamilies) {
				spec.IPFamilies = slices.Clone(spec.IPFamilies[:1])
			}
		} else {
			if n := len(spec.ClusterIPs); n > 0 && n < len(old.Spec.ClusterIPs) {
				errs = append(errs, field.Invalid(policy, spec.IPFamilyPolicy, "must be 'SingleStack' to release the secondary cluster IP"))
			}
			if n := len(spec.IPFamilies); n > 0 && n < len(old.Spec.IPFamilies) {
				errs = append(errs, field.Invalid(policy, spec.IPFamilyPolicy, "must be 'SingleStack' to release the secondary IP family"))
			}
		}
	}
	if single {
		if len(spec.ClusterIPs) == 2 {
			errs = append(errs, field.Invalid(policy, spec.IPFamilyPolicy, "must be 'RequireDualStack' or 'PreferDualStack' when multiple cluster IPs are specified"))
		}
		if len(spec.IPFamilies) == 2 {
			errs = append(errs, field.Invalid(policy, spec.IPFamilyPolicy, "must be 'RequireDualStack' or 'PreferDualStack' when multiple IP families are specified"))
		}
	}
	return errs
}

// familiesOfAddresses infers families that were not given from the addresses
// that were.
func (a *serviceAllocator) familiesOfAddresses(svc *corev1.Service) field.ErrorList {
	spec := &svc.Spec
	var errs field.ErrorList
	for i, s := range spec.ClusterIPs {
		if s == corev1.ClusterIPNone {
			break
		}
		ip, ok := parseAddr(s)
		if !ok || i < len(spec.IPFamilies) {
			continue
		}
		if f := family(ip); a.ips[f] == nil {
			errs = append(errs, field.Invalid(field.NewPath("spec", "clusterIPs").Index(i), spec.ClusterIPs, fmt.Sprintf("%s is not configured on this cluster", f)))
		} else {
			spec.IPFamilies = append(spec.IPFamilies, f)
		}
	}
	return errs
}
