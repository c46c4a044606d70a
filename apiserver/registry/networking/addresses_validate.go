package networking

import (
	networkingv1 "k8s.io/api/networking/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	netutils "k8s.io/utils/net"

	"github.com/periplus/periplus/apiserver/validation"
)

// ipAddress checks what an allocated address belongs to.
func ipAddress(a *networkingv1.IPAddress) (errs field.ErrorList) {
	at, ref := field.NewPath("spec", "parentRef"), a.Spec.ParentRef
	if ref == nil {
		return field.ErrorList{field.Required(at, "")}
	}
	if ref.Group != "" {
		errs = append(errs, validation.DNSSubdomain(ref.Group, at.Child("group"))...)
	}
	errs = append(errs, neededSegment(ref.Resource, at.Child("resource"))...)
	errs = append(errs, neededSegment(ref.Name, at.Child("name"))...)
	if ref.Namespace != "" {
		errs = append(errs, validation.PathSegment(ref.Namespace, at.Child("namespace"))...)
	}
	return errs
}

// neededSegment is for values that must be there and fit into a path.
func neededSegment(value string, at *field.Path) field.ErrorList {
	if value == "" {
		return field.ErrorList{field.Required(at, "")}
	}
	return validation.PathSegment(value, at)
}

var cidrsPath = field.NewPath("spec", "cidrs")

func serviceCIDR(spec *networkingv1.ServiceCIDRSpec) (errs field.ErrorList) {
	switch len(spec.CIDRs) {
	case 0:
		return field.ErrorList{field.Required(cidrsPath, "at least one CIDR required")}
	case 1, 2:
	default:
		return field.ErrorList{field.Invalid(cidrsPath, spec, "may only hold up to 2 values")}
	}
	for i, cidr := range spec.CIDRs {
		errs = append(errs, utilvalidation.IsValidCIDR(cidrsPath.Index(i), cidr)...)
	}
	if len(spec.CIDRs) == 2 {
		first, second := netutils.IPFamilyOfCIDRString(spec.CIDRs[0]), netutils.IPFamilyOfCIDRString(spec.CIDRs[1])
		if first == second && first != netutils.IPFamilyUnknown {
			errs = append(errs, field.Invalid(cidrsPath, spec.CIDRs, "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"))
		}
	}
	return errs
}

// serviceCIDRUpdate lets a range of the other family be added, and nothing else change.
func serviceCIDRUpdate(spec, old *networkingv1.ServiceCIDRSpec) (errs field.ErrorList) {
	changed := func(i int) {
		if spec.CIDRs[i] != old.CIDRs[i] {
			errs = append(errs, field.Invalid(cidrsPath.Index(i), spec.CIDRs[i], validation.ImmutableError))
		}
	}
	switch {
	case len(old.CIDRs) == len(spec.CIDRs):
		for i := range old.CIDRs {
			changed(i)
		}
	case len(old.CIDRs) == 1 && len(spec.CIDRs) == 2:
		changed(0)
		errs = append(errs, serviceCIDR(spec)...)
	default:
		errs = append(errs, field.Invalid(cidrsPath, spec.CIDRs, validation.ImmutableError))
	}
	return errs
}

// ingressClass checks a class; old is nil for a new one.
func ingressClass(class, old *networkingv1.IngressClass) (errs field.ErrorList) {
	at := field.NewPath("spec")
	controller := class.Spec.Controller
	if old != nil {
		errs = append(errs, validation.Immutable(controller, old.Spec.Controller, at.Child("controller"))...)
	}
	if len(controller) > maxControllerName {
		errs = append(errs, field.TooLong(at.Child("controller"), "", maxControllerName))
	}
	errs = append(errs, utilvalidation.IsDomainPrefixedPath(at.Child("controller"), controller)...)
	p, at := class.Spec.Parameters, at.Child("parameters")
	if p == nil {
		return errs
	}
	if p.APIGroup != nil {
		errs = append(errs, validation.DNSSubdomain(*p.APIGroup, at.Child("apiGroup"))...)
	}
	errs = append(errs, neededSegment(p.Kind, at.Child("kind"))...)
	errs = append(errs, neededSegment(p.Name, at.Child("name"))...)
	const cluster, namespace = networkingv1.IngressClassParametersReferenceScopeCluster, networkingv1.IngressClassParametersReferenceScopeNamespace
	switch {
	case p.Scope == nil:
		errs = append(errs, field.Required(at.Child("scope"), ""))
	case *p.Scope != cluster && *p.Scope != namespace:
		errs = append(errs, field.NotSupported(at.Child("scope"), *p.Scope, []string{cluster, namespace}))
	case *p.Scope == namespace && p.Namespace == nil:
		errs = append(errs, field.Required(at.Child("namespace"), "`parameters.scope` is set to 'Namespace'"))
	case *p.Scope == namespace:
		errs = append(errs, validation.ObjectName(*p.Namespace, apivalidation.ValidateNamespaceName, at.Child("namespace"))...)
	case p.Namespace != nil:
		errs = append(errs, field.Forbidden(at.Child("namespace"), "`parameters.scope` is set to 'Cluster'"))
	}
	return errs
}

const maxControllerName = 250
