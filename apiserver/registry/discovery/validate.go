package discovery

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	netutils "k8s.io/utils/net"

	"github.com/periplus/periplus/apiserver/validation"
)

// How much a slice may hold.
const (
	maxEndpoints = 1000
	maxAddresses = 100
	maxPorts     = 20000
	maxHints     = 8
)

var addressTypes = []discoveryv1.AddressType{discoveryv1.AddressTypeFQDN, discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6}

func validateSlice(slice, old *discoveryv1.EndpointSlice) field.ErrorList {
	var errs field.ErrorList
	switch at := field.NewPath("addressType"); {
	case slice.AddressType == "":
		errs = append(errs, field.Required(at, ""))
	case !slices.Contains(addressTypes, slice.AddressType):
		errs = append(errs, field.NotSupported(at, slice.AddressType, addressTypes))
	}
	errs = append(errs, ports(slice.Ports, field.NewPath("ports"))...)
	if old != nil && validation.Equal(slice.Endpoints, old.Endpoints) {
		return errs
	}
	at := field.NewPath("endpoints")
	if len(slice.Endpoints) > maxEndpoints {
		return append(errs, field.TooMany(at, len(slice.Endpoints), maxEndpoints))
	}
	for i := range slice.Endpoints {
		errs = append(errs, endpoint(&slice.Endpoints[i], slice.AddressType, at.Index(i))...)
	}
	return errs
}

func endpoint(e *discoveryv1.Endpoint, t discoveryv1.AddressType, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	addresses := at.Child("addresses")
	switch n := len(e.Addresses); {
	case n == 0:
		errs = append(errs, field.Required(addresses, ""))
	case n > maxAddresses:
		errs = append(errs, field.TooMany(addresses, n, maxAddresses))
	}
	for i, address := range e.Addresses {
		p := addresses.Index(i)
		switch t {
		case discoveryv1.AddressTypeIPv4:
			if bad := validation.LegacyIP(p, address, nil); len(bad) > 0 {
				errs = append(errs, bad...)
				continue
			}
			if !netutils.IsIPv4String(address) {
				errs = append(errs, field.Invalid(addresses, address, "must be an IPv4 address"))
			}
			errs = append(errs, validation.EndpointIP(address, p)...)
		case discoveryv1.AddressTypeIPv6:
			if bad := utilvalidation.IsValidIP(p, address); len(bad) > 0 {
				errs = append(errs, bad...)
				continue
			}
			if !netutils.IsIPv6String(address) {
				errs = append(errs, field.Invalid(addresses, address, "must be an IPv6 address"))
			}
			errs = append(errs, validation.EndpointIP(address, p)...)
		case discoveryv1.AddressTypeFQDN:
			errs = append(errs, utilvalidation.IsFullyQualifiedDomainName(p, address)...)
		}
	}
	if e.NodeName != nil {
		errs = append(errs, nodeName(*e.NodeName, at.Child("nodeName"))...)
	}
	if e.Hostname != nil {
		errs = append(errs, validation.DNSLabel(*e.Hostname, at.Child("hostname"))...)
	}
	if e.Hints != nil {
		errs = append(errs, hints(e.Hints, at.Child("hints"))...)
	}
	return errs
}

func nodeName(name string, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, m := range apivalidation.NameIsDNSSubdomain(name, false) {
		errs = append(errs, field.Invalid(at, name, m))
	}
	return errs
}

func hints(h *discoveryv1.EndpointHints, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	zones, nodes := at.Child("forZones"), at.Child("forNodes")
	if n := len(h.ForZones); n > maxHints {
		return append(errs, field.TooMany(zones, n, maxHints))
	}
	for i, z := range h.ForZones {
		p := zones.Index(i).Child("name")
		if slices.Contains(h.ForZones[:i], z) {
			errs = append(errs, field.Duplicate(p, z.Name))
		}
		for _, m := range utilvalidation.IsValidLabelValue(z.Name) {
			errs = append(errs, field.Invalid(p, z.Name, m))
		}
	}
	if n := len(h.ForNodes); n > maxHints {
		return append(errs, field.TooMany(nodes, n, maxHints))
	}
	for i, n := range h.ForNodes {
		p := nodes.Index(i).Child("name")
		if slices.Contains(h.ForNodes[:i], n) {
			errs = append(errs, field.Duplicate(p, n.Name))
		}
		errs = append(errs, nodeName(n.Name, p)...)
	}
	return errs
}

func ports(list []discoveryv1.EndpointPort, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(list) > maxPorts {
		return append(errs, field.TooMany(at, len(list), maxPorts))
	}
	seen := map[string]bool{}
	for i := range list {
		port, p := &list[i], at.Index(i)
		name, protocol := *port.Name, corev1.Protocol("")
		if name != "" {
			errs = append(errs, validation.DNSLabel(name, p.Child("name"))...)
		}
		if seen[name] {
			errs = append(errs, field.Duplicate(p.Child("name"), port.Name))
		}
		seen[name] = true
		if port.Protocol != nil {
			protocol = *port.Protocol
		}
		switch protocol {
		case corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP:
		default:
			errs = append(errs, field.NotSupported(p.Child("protocol"), protocol, []corev1.Protocol{corev1.ProtocolSCTP, corev1.ProtocolTCP, corev1.ProtocolUDP}))
		}
		if port.AppProtocol != nil {
			errs = append(errs, validation.QualifiedName(*port.AppProtocol, p.Child("appProtocol"))...)
		}
	}
	return errs
}
