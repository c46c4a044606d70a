package resource

import (
	"fmt"
	"regexp"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/validation"
)

// sliceSpec checks what a driver offers: devices of one pool, and on which nodes.
func sliceSpec(spec, old *resourcev1.ResourceSliceSpec) field.ErrorList {
	at := field.NewPath("spec")
	errs := validation.CSIDriverName(spec.Driver, at.Child("driver"))
	pool := at.Child("pool")
	errs = append(errs, poolName(spec.Pool.Name, pool.Child("name"))...)
	if n := spec.Pool.ResourceSliceCount; n <= 0 {
		errs = append(errs, field.Invalid(pool.Child("resourceSliceCount"), n, "must be greater than zero"))
	}
	if n := spec.Pool.Generation; n < 0 {
		errs = append(errs, field.Invalid(pool.Child("generation"), n, "must be greater than or equal to zero"))
	}
	if old != nil {
		errs = append(errs, validation.Immutable(spec.Pool.Name, old.Pool.Name, pool.Child("name"))...)
		errs = append(errs, validation.Immutable(spec.Driver, old.Driver, at.Child("driver"))...)
		errs = append(errs, validation.Immutable(spec.NodeName, old.NodeName, at.Child("nodeName"))...)
	}
	errs = append(errs, sliceNodes(spec, at)...)
	if spec.SharedCounters != nil && spec.Devices != nil {
		errs = append(errs, field.Invalid(at, "", "only one of `sharedCounters` or `devices` is allowed"))
	}
	most := resourcev1.ResourceSliceMaxDevices
	for i := range spec.Devices {
		if d := &spec.Devices[i]; len(d.Taints)+len(d.ConsumesCounters) > 0 || hasList(d) {
			most = resourcev1.ResourceSliceMaxDevicesWithAdvancedFeatures
		}
	}
	perDevice := spec.PerDeviceNodeSelection != nil && *spec.PerDeviceNodeSelection
	before := map[string]*resourcev1.Device{}
	if old != nil {
		for i := range old.Devices {
			before[old.Devices[i].Name] = &old.Devices[i]
		}
	}
	errs = append(errs, sharedCounters(spec.SharedCounters, at.Child("sharedCounters"))...)
	return append(errs, list(spec.Devices, most, func(d resourcev1.Device) string { return d.Name }, at.Child("devices"), func(d *resourcev1.Device, at *field.Path) field.ErrorList {
		return device(d, before[d.Name], perDevice, at)
	})...)
}

// oneOf collects which members of a union are set.
type oneOf struct {
	errs  field.ErrorList
	names []string
}

func (o *oneOf) is(name string) { o.names = append(o.names, "`"+name+"`") }

// yes is for flags that are true or absent.
func (o *oneOf) yes(flag *bool, name string, at *field.Path) {
	switch {
	case flag == nil:
	case *flag:
		o.is(name)
	default:
		o.errs = append(o.errs, field.Invalid(at.Child(name), *flag, "must be either unset or set to true"))
	}
}

func (o *oneOf) end(at *field.Path, detail, more string) field.ErrorList {
	switch len(o.names) {
	case 0:
		return append(o.errs, field.Required(at, detail))
	case 1:
		return o.errs
	}
	return append(o.errs, field.Invalid(at, "{"+strings.Join(o.names, ", ")+"}", detail+more))
}

func sliceNodes(spec *resourcev1.ResourceSliceSpec, at *field.Path) field.ErrorList {
	var o oneOf
	if n, p := spec.NodeName, at.Child("nodeName"); n != nil && *n == "" {
		o.errs = append(o.errs, field.Invalid(p, *n, "must be either unset or set to a non-empty string"))
	} else if n != nil {
		o.is("nodeName")
		o.errs = append(o.errs, validation.ObjectName(*n, apivalidation.NameIsDNSSubdomain, p)...)
	}
	if s, p := spec.NodeSelector, at.Child("nodeSelector"); s != nil {
		o.is("nodeSelector")
		o.errs = append(o.errs, validation.NodeSelector(s, p)...)
		if len(s.NodeSelectorTerms) != 1 {
			o.errs = append(o.errs, field.Invalid(p.Child("nodeSelectorTerms"), s.NodeSelectorTerms, "must have exactly one node selector term"))
		}
	}
	o.yes(spec.AllNodes, "allNodes", at)
	o.yes(spec.PerDeviceNodeSelection, "perDeviceNodeSelection", at)
	return o.end(at, "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required", ", but multiple fields are set")
}

func deviceNodes(d *resourcev1.Device, perDevice bool, at *field.Path) field.ErrorList {
	if !perDevice {
		if d.NodeName != nil || d.NodeSelector != nil || d.AllNodes != nil {
			return field.ErrorList{field.Invalid(at, nil, "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in the ResourceSlice spec")}
		}
		return nil
	}
	var o oneOf
	if n, p := d.NodeName, at.Child("nodeName"); n != nil && *n == "" {
		o.errs = append(o.errs, field.Invalid(p, *n, "must not be empty"))
	} else if n != nil {
		o.is("nodeName")
		o.errs = append(o.errs, validation.ObjectName(*n, apivalidation.NameIsDNSSubdomain, p)...)
	}
	if d.NodeSelector != nil {
		o.is("nodeSelector")
		o.errs = append(o.errs, validation.NodeSelector(d.NodeSelector, at.Child("nodeSelector"))...)
	}
	o.yes(d.AllNodes, "allNodes", at)
	return o.end(at, "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to true in the ResourceSlice spec", "")
}

func device(d, old *resourcev1.Device, perDevice bool, at *field.Path) field.ErrorList {
	errs := validation.DNSLabel(d.Name, at.Child("name"))
	if n := len(d.Attributes) + len(d.Capacity); n > resourcev1.ResourceSliceMaxAttributesAndCapacitiesPerDevice {
		errs = append(errs, field.Invalid(at, n, fmt.Sprintf("the total number of attributes and capacities must not exceed %d", resourcev1.ResourceSliceMaxAttributesAndCapacitiesPerDevice)))
	}
	for _, name := range sortedKeys(d.Attributes) {
		a, p := d.Attributes[name], at.Child("attributes")
		errs = append(errs, qualified(string(name), p)...)
		errs = append(errs, attribute(&a, p.Key(shortened(string(name))))...)
	}
	if old == nil || !validation.Equal(old.Capacity, d.Capacity) {
		shared := d.AllowMultipleAllocations != nil && *d.AllowMultipleAllocations
		for _, name := range sortedKeys(d.Capacity) {
			c, p := d.Capacity[name], at.Child("capacity")
			errs = append(errs, qualified(string(name), p)...)
			errs = append(errs, capacity(&c, shared, p.Key(shortened(string(name))))...)
		}
	}
	errs = append(errs, consumedCounters(d.ConsumesCounters, at.Child("consumesCounters"))...)
	errs = append(errs, bindingConditions(d.BindingConditions, d.BindingFailureConditions, at)...)
	if old == nil || !validation.Equal(old.Taints, d.Taints) {
		errs = append(errs, list(d.Taints, resourcev1.DeviceTaintsMaxLength, nil, at.Child("taints"), func(t *resourcev1.DeviceTaint, at *field.Path) field.ErrorList { return taint(t, nil, at) })...)
	}
	return append(errs, deviceNodes(d, perDevice, at)...)
}

// semver is what semver.org 2.0.0 calls a version.
var semver = regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-((?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(?:\.(?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*))?(?:\+([0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*))?$`)

// attribute checks a value of exactly one type.
func attribute(a *resourcev1.DeviceAttribute, at *field.Path) (errs field.ErrorList) {
	var set []string
	for _, v := range []struct {
		name  string
		given bool
	}{
		{"int", a.IntValue != nil}, {"bool", a.BoolValue != nil}, {"string", a.StringValue != nil}, {"version", a.VersionValue != nil},
		{"ints", a.IntValues != nil}, {"bools", a.BoolValues != nil}, {"strings", a.StringValues != nil}, {"versions", a.VersionValues != nil},
	} {
		if v.given {
			set = append(set, v.name)
		}
	}
	long := func(value string, p *field.Path) {
		if len(value) > resourcev1.DeviceAttributeMaxValueLength {
			errs = append(errs, field.TooLong(p, "", resourcev1.DeviceAttributeMaxValueLength))
		}
	}
	if a.StringValue != nil {
		long(*a.StringValue, at.Child("string"))
	}
	if v := a.VersionValue; v != nil {
		if !semver.MatchString(*v) {
			errs = append(errs, field.Invalid(at.Child("version"), *v, "must be a string compatible with semver.org spec 2.0.0"))
		}
		long(*v, at.Child("version"))
	}
	const values = "one of: `int`, `bool`, `string`, `version`, `ints`, `bools`, `strings`, `versions`"
	switch len(set) {
	case 0:
		errs = append(errs, field.Invalid(at, "", "must specify "+values))
	case 1:
	default:
		errs = append(errs, field.Invalid(at, "{"+strings.Join(set, ", ")+"}", "must specify exactly "+values))
	}
	return errs
}

func hasList(d *resourcev1.Device) bool {
	for _, a := range d.Attributes {
		if isList(&a) {
			return true
		}
	}
	return false
}

// shortened is a key for a path: one that is much longer than any name may be is cut
// in the middle.
func shortened(key string) string {
	const most = resourcev1.DeviceMaxDomainLength + 1 + resourcev1.DeviceMaxIDLength
	if len(key) <= most {
		return key
	}
	rest := most - len("...")
	return key[:(rest+1)/2] + "..." + key[len(key)-rest/2:]
}
