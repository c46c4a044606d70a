package resource

import (
	"fmt"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/validation"
)

// requests are the names of the requests of a claim, with those of their alternatives.
type requests map[string][]string

func requestsOf(c *resourcev1.DeviceClaim) requests {
	names := requests{}
	for i := range c.Requests {
		var parts []string
		for _, s := range c.Requests[i].FirstAvailable {
			parts = append(parts, s.Name)
		}
		names[c.Requests[i].Name] = parts
	}
	return names
}

// reference checks a name of a request, or of an alternative as "request/alternative".
func (r requests) reference(name string, at *field.Path) (errs field.ErrorList) {
	const detail = "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
	parts := strings.Split(name, "/")
	if len(parts) > 2 {
		return field.ErrorList{field.Invalid(at, name, detail)}
	}
	for _, part := range parts {
		errs = append(errs, validation.DNSLabel(part, at)...)
	}
	alternatives, ok := r[parts[0]]
	if !ok || len(parts) == 2 && !slices.Contains(alternatives, parts[1]) {
		errs = append(errs, field.Invalid(at, name, detail))
	}
	return errs
}

func (r requests) references(names []string, at *field.Path) field.ErrorList {
	return list(names, resourcev1.DeviceRequestsMaxSize, text, at, func(name *string, at *field.Path) field.ErrorList { return r.reference(*name, at) })
}

// claimSpec checks which devices are asked for.
func claimSpec(spec *resourcev1.ResourceClaimSpec, at *field.Path) field.ErrorList {
	c, at := &spec.Devices, at.Child("devices")
	names := requestsOf(c)
	errs := list(c.Requests, resourcev1.DeviceRequestsMaxSize, func(r resourcev1.DeviceRequest) string { return r.Name }, at.Child("requests"), deviceRequest)
	errs = append(errs, list(c.Constraints, resourcev1.DeviceConstraintsMaxSize, nil, at.Child("constraints"), names.constraint)...)
	return append(errs, list(c.Config, resourcev1.DeviceConfigMaxSize, nil, at.Child("config"), func(c *resourcev1.DeviceClaimConfiguration, at *field.Path) field.ErrorList {
		return append(names.references(c.Requests, at.Child("requests")), opaque(&c.DeviceConfiguration, false, at)...)
	})...)
}

func (r requests) constraint(c *resourcev1.DeviceConstraint, at *field.Path) field.ErrorList {
	errs := r.references(c.Requests, at.Child("requests"))
	switch {
	case c.MatchAttribute != nil:
		return append(errs, fullyQualified(c.MatchAttribute, at.Child("matchAttribute"))...)
	case c.DistinctAttribute != nil:
		return append(errs, fullyQualified(c.DistinctAttribute, at.Child("distinctAttribute"))...)
	}
	return append(errs, field.Required(at, `exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set`))
}

func deviceRequest(r *resourcev1.DeviceRequest, at *field.Path) field.ErrorList {
	errs := validation.DNSLabel(r.Name, at.Child("name"))
	switch first := len(r.FirstAvailable) > 0; {
	case !first && r.Exactly == nil:
		errs = append(errs, field.Required(at, "exactly one of `exactly` or `firstAvailable` is required"))
	case first && r.Exactly != nil:
		errs = append(errs, field.Invalid(at, nil, "exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set"))
	case first:
		errs = append(errs, list(r.FirstAvailable, resourcev1.FirstAvailableDeviceRequestMaxSize, func(s resourcev1.DeviceSubRequest) string { return s.Name },
			at.Child("firstAvailable"), func(s *resourcev1.DeviceSubRequest, at *field.Path) field.ErrorList {
				errs := validation.DNSLabel(s.Name, at.Child("name"))
				return append(errs, exactRequest(s.DeviceClassName, s.Selectors, s.AllocationMode, s.Count, s.Tolerations, at)...)
			})...)
	default:
		e := r.Exactly
		errs = append(errs, exactRequest(e.DeviceClassName, e.Selectors, e.AllocationMode, e.Count, e.Tolerations, at.Child("exactly"))...)
	}
	return errs
}

func exactRequest(class string, selectors []resourcev1.DeviceSelector, mode resourcev1.DeviceAllocationMode, count int64, tolerated []resourcev1.DeviceToleration, at *field.Path) (errs field.ErrorList) {
	if class == "" {
		errs = append(errs, field.Required(at.Child("deviceClassName"), ""))
	} else {
		errs = append(errs, validation.DNSSubdomain(class, at.Child("deviceClassName"))...)
	}
	errs = append(errs, deviceSelectors(selectors, false, at.Child("selectors"))...)
	switch p := at.Child("count"); mode {
	case resourcev1.DeviceAllocationModeAll:
		if count != 0 {
			errs = append(errs, field.Invalid(p, count, fmt.Sprintf("must not be specified when allocationMode is '%s'", mode)))
		}
	case resourcev1.DeviceAllocationModeExactCount:
		if count <= 0 {
			errs = append(errs, field.Invalid(p, count, "must be greater than zero"))
		}
	default:
		errs = append(errs, field.NotSupported(at.Child("allocationMode"), mode, []resourcev1.DeviceAllocationMode{resourcev1.DeviceAllocationModeAll, resourcev1.DeviceAllocationModeExactCount}))
	}
	return append(errs, tolerations(tolerated, at.Child("tolerations"))...)
}

// claimStatus checks what a claim got and who uses it.
func claimStatus(c, old *resourcev1.ResourceClaim) field.ErrorList {
	s, at := &c.Status, field.NewPath("status")
	reserved := at.Child("reservedFor")
	errs := list(s.ReservedFor, resourcev1.ResourceClaimReservedForMaxSize, func(r resourcev1.ResourceClaimConsumerReference) string { return string(r.UID) }, reserved,
		func(r *resourcev1.ResourceClaimConsumerReference, at *field.Path) (errs field.ErrorList) {
			for _, f := range []struct{ name, value string }{{"resource", r.Resource}, {"name", r.Name}, {"uid", string(r.UID)}} {
				if f.value == "" {
					errs = append(errs, field.Required(at.Child(f.name), ""))
				}
			}
			return errs
		})
	if len(s.ReservedFor) > 0 && s.Allocation == nil {
		errs = append(errs, field.Forbidden(reserved, "may not be specified when `allocated` is not set"))
	}
	if c.DeletionTimestamp != nil && s.Allocation != nil && slices.ContainsFunc(s.ReservedFor, func(r resourcev1.ResourceClaimConsumerReference) bool {
		return !slices.Contains(old.Status.ReservedFor, r)
	}) {
		errs = append(errs, field.Forbidden(reserved, "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"))
	}
	errs = append(errs, deviceStatuses(s, at.Child("devices"))...)
	switch names := requestsOf(&c.Spec.Devices); {
	case s.Allocation == nil:
	case old.Status.Allocation != nil:
		if !validation.Equal(s.Allocation, old.Status.Allocation) {
			errs = append(errs, field.Invalid(at.Child("allocation"), nil, "field cannot be modified once set"))
		}
	default:
		errs = append(errs, names.allocation(s.Allocation, at.Child("allocation"))...)
	}
	return errs
}

func (r requests) allocation(a *resourcev1.AllocationResult, at *field.Path) field.ErrorList {
	devices := at.Child("devices")
	errs := list(a.Devices.Results, resourcev1.AllocationResultsMaxSize, nil, devices.Child("results"), func(d *resourcev1.DeviceRequestAllocationResult, at *field.Path) field.ErrorList {
		errs := r.reference(d.Request, at.Child("request"))
		errs = append(errs, validation.DriverName(d.Driver, at.Child("driver"))...)
		errs = append(errs, poolName(d.Pool, at.Child("pool"))...)
		errs = append(errs, validation.DNSLabel(d.Device, at.Child("device"))...)
		errs = append(errs, bindingConditions(d.BindingConditions, d.BindingFailureConditions, at)...)
		errs = append(errs, uid(d.ShareID, at.Child("shareID"))...)
		return append(errs, tolerations(d.Tolerations, at.Child("tolerations"))...)
	})
	errs = append(errs, list(a.Devices.Config, 2*resourcev1.DeviceConfigMaxSize, nil, devices.Child("config"), func(c *resourcev1.DeviceAllocationConfiguration, at *field.Path) (errs field.ErrorList) {
		switch c.Source {
		case resourcev1.AllocationConfigSourceClaim, resourcev1.AllocationConfigSourceClass:
		case "":
			errs = append(errs, field.Required(at.Child("source"), ""))
		default:
			errs = append(errs, field.NotSupported(at.Child("source"), c.Source, []resourcev1.AllocationConfigSource{resourcev1.AllocationConfigSourceClaim, resourcev1.AllocationConfigSourceClass}))
		}
		errs = append(errs, r.references(c.Requests, at.Child("requests"))...)
		return append(errs, opaque(&c.DeviceConfiguration, false, at)...)
	})...)
	if a.NodeSelector != nil {
		errs = append(errs, validation.NodeSelector(a.NodeSelector, at.Child("nodeSelector"))...)
	}
	return errs
}
