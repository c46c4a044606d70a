package networking

import (
	"fmt"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	netutils "k8s.io/utils/net"
)

// ingressSpec checks a spec. Names of secrets and the rules of wildcard hosts that
// were stored under older rules (old) may stay.
func ingressSpec(spec, old *networkingv1.IngressSpec) field.ErrorList {
	var errs field.ErrorList
	at := field.NewPath("spec")
	if len(spec.Rules) == 0 && spec.DefaultBackend == nil {
		errs = append(errs, field.Invalid(at, spec.Rules, "either `defaultBackend` or `rules` must be specified"))
	}
	if spec.DefaultBackend != nil {
		errs = append(errs, ingressBackend(spec.DefaultBackend, at.Child("defaultBackend"))...)
	}
	for i := range spec.Rules {
		errs = append(errs, ingressRule(&spec.Rules[i], badWildcards(old), at.Child("rules").Index(i))...)
	}
	for i, tls := range spec.TLS {
		p := at.Child("tls").Index(i)
		for j, host := range tls.Hosts {
			errs = append(errs, hostname(host, p.Child("hosts").Index(j))...)
		}
		if tls.SecretName != "" && !badSecrets(old) {
			errs = append(errs, invalid(apivalidation.NameIsDNSSubdomain(tls.SecretName, false), tls.SecretName, p.Child("secretName"))...)
		}
	}
	if class := spec.IngressClassName; class != nil {
		errs = append(errs, invalid(apivalidation.NameIsDNSSubdomain(*class, false), *class, at.Child("ingressClassName"))...)
	}
	return errs
}

func invalid(messages []string, value any, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, m := range messages {
		errs = append(errs, field.Invalid(at, value, m))
	}
	return errs
}

func hostname(host string, at *field.Path) field.ErrorList {
	if strings.Contains(host, "*") {
		return invalid(validation.IsWildcardDNS1123Subdomain(host), host, at)
	}
	return invalid(validation.IsDNS1123Subdomain(host), host, at)
}

func badSecrets(old *networkingv1.IngressSpec) bool {
	return old != nil && slices.ContainsFunc(old.TLS, func(tls networkingv1.IngressTLS) bool {
		return tls.SecretName != "" && len(apivalidation.NameIsDNSSubdomain(tls.SecretName, false)) > 0
	})
}

func badWildcards(old *networkingv1.IngressSpec) bool {
	return old != nil && slices.ContainsFunc(old.Rules, func(r networkingv1.IngressRule) bool {
		return strings.Contains(r.Host, "*") && len(ingressRule(&networkingv1.IngressRule{IngressRuleValue: r.IngressRuleValue}, false, nil)) > 0
	})
}

func ingressRule(rule *networkingv1.IngressRule, anyWildcard bool, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if rule.Host != "" {
		if netutils.ParseIPSloppy(rule.Host) != nil {
			errs = append(errs, field.Invalid(at.Child("host"), rule.Host, "must be a DNS name, not an IP address"))
		}
		errs = append(errs, hostname(rule.Host, at.Child("host"))...)
	}
	if rule.HTTP == nil || anyWildcard && strings.Contains(rule.Host, "*") {
		return errs
	}
	paths := at.Child("http", "paths")
	if len(rule.HTTP.Paths) == 0 {
		errs = append(errs, field.Required(paths, ""))
	}
	for i := range rule.HTTP.Paths {
		errs = append(errs, ingressPath(&rule.HTTP.Paths[i], paths.Index(i))...)
	}
	return errs
}

func ingressPath(path *networkingv1.HTTPIngressPath, at *field.Path) field.ErrorList {
	if path.PathType == nil {
		return field.ErrorList{field.Required(at.Child("pathType"), "pathType must be specified")}
	}
	var errs field.ErrorList
	bad := func(detail string) { errs = append(errs, field.Invalid(at.Child("path"), path.Path, detail)) }
	switch *path.PathType {
	case networkingv1.PathTypeExact, networkingv1.PathTypePrefix:
		if !strings.HasPrefix(path.Path, "/") {
			bad("must be an absolute path")
		}
		for _, sequence := range []string{"//", "/./", "/../", "%2f", "%2F"} {
			if strings.Contains(path.Path, sequence) {
				bad(fmt.Sprintf("must not contain '%s'", sequence))
			}
		}
		for _, suffix := range []string{"/..", "/."} {
			if strings.HasSuffix(path.Path, suffix) {
				bad(fmt.Sprintf("cannot end with '%s'", suffix))
			}
		}
	case networkingv1.PathTypeImplementationSpecific:
		if path.Path != "" && !strings.HasPrefix(path.Path, "/") {
			bad("must be an absolute path")
		}
	default:
		errs = append(errs, field.NotSupported(at.Child("pathType"), *path.PathType, []networkingv1.PathType{
			networkingv1.PathTypeExact, networkingv1.PathTypeImplementationSpecific, networkingv1.PathTypePrefix}))
	}
	return append(errs, ingressBackend(&path.Backend, at.Child("backend"))...)
}

func ingressBackend(b *networkingv1.IngressBackend, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch {
	case b.Resource != nil && b.Service != nil:
		return append(errs, field.Invalid(at, "", "cannot set both resource and service backends"))
	case b.Resource != nil:
		p := at.Child("resource")
		if group := b.Resource.APIGroup; group != nil {
			errs = append(errs, invalid(validation.IsDNS1123Subdomain(*group), *group, p.Child("apiGroup"))...)
		}
		errs = append(errs, neededSegment(b.Resource.Kind, p.Child("kind"))...)
		errs = append(errs, neededSegment(b.Resource.Name, p.Child("name"))...)
	case b.Service != nil:
		name := at.Child("service", "name")
		if b.Service.Name == "" {
			errs = append(errs, field.Required(name, ""))
		} else {
			errs = append(errs, invalid(apivalidation.NameIsDNSLabel(b.Service.Name, false), b.Service.Name, name)...)
		}
		switch port, p := b.Service.Port, at.Child("service", "port"); {
		case port.Name != "" && port.Number != 0:
			errs = append(errs, field.Invalid(at, "", "cannot set both port name & port number"))
		case port.Name != "":
			errs = append(errs, invalid(validation.IsValidPortName(port.Name), port.Name, p.Child("name"))...)
		case port.Number != 0:
			errs = append(errs, invalid(validation.IsValidPortNum(int(port.Number)), port.Number, p.Child("number"))...)
		default:
			errs = append(errs, field.Required(at, "port name or number is required"))
		}
	default:
		errs = append(errs, field.Invalid(at, "", "resource or service backend is required"))
	}
	return errs
}

var ingressPoints = field.NewPath("status", "loadBalancer", "ingress")

// ingressAddresses checks where an ingress is reached.
func ingressAddresses(status, old *networkingv1.IngressLoadBalancerStatus) (errs field.ErrorList) {
	var known []string
	for _, point := range old.Ingress {
		if point.IP != "" {
			known = append(known, point.IP)
		}
	}
	for i, point := range status.Ingress {
		at := ingressPoints.Index(i)
		if point.IP != "" {
			errs = append(errs, validation.IsValidIPForLegacyField(at.Child("ip"), point.IP, true, known)...)
		}
		if point.Hostname != "" {
			errs = append(errs, invalid(validation.IsDNS1123Subdomain(point.Hostname), point.Hostname, at.Child("hostname"))...)
			if netutils.ParseIPSloppy(point.Hostname) != nil {
				errs = append(errs, field.Invalid(at.Child("hostname"), point.Hostname, "must be a DNS name, not an IP address"))
			}
		}
	}
	return errs
}
