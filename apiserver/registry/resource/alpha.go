package resource

import (
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
)

// dropAlphaSlice removes the fields of features that are alpha in v1.37, as upstream
// does unless the object already used them: lists as attributes, groups of devices
// that fit together, what devices take of a node, operations that are left out, types
// of partitions.
func dropAlphaSlice(spec, old *resourcev1.ResourceSliceSpec) {
	var kept alphaSlice
	if old != nil {
		kept = alphaIn(old)
	}
	if !kept.partitions {
		spec.PartitionTypeAttribute = nil
	}
	if !kept.skips {
		spec.SkipNodeOperations = nil
	}
	for i := range spec.Devices {
		d := &spec.Devices[i]
		if !kept.nodes {
			d.NodeAllocatableResources = nil
		}
		for j := range d.ConsumesCounters {
			if !kept.groups {
				d.ConsumesCounters[j].CompatibilityGroups = nil
			}
		}
		for name, a := range d.Attributes {
			if !kept.lists && isList(&a) {
				a.BoolValues, a.IntValues, a.StringValues, a.VersionValues = nil, nil, nil, nil
				d.Attributes[name] = a
			}
		}
	}
}

// alphaSlice tells which of the features an object uses.
type alphaSlice struct{ partitions, skips, nodes, groups, lists bool }

func alphaIn(spec *resourcev1.ResourceSliceSpec) alphaSlice {
	use := alphaSlice{partitions: spec.PartitionTypeAttribute != nil, skips: len(spec.SkipNodeOperations) > 0}
	for i := range spec.Devices {
		d := &spec.Devices[i]
		use.nodes = use.nodes || len(d.NodeAllocatableResources) > 0
		for j := range d.ConsumesCounters {
			use.groups = use.groups || len(d.ConsumesCounters[j].CompatibilityGroups) > 0
		}
		for _, a := range d.Attributes {
			use.lists = use.lists || isList(&a)
		}
	}
	return use
}

func isList(a *resourcev1.DeviceAttribute) bool {
	return a.BoolValues != nil || a.IntValues != nil || a.StringValues != nil || a.VersionValues != nil
}

// dropAlphaClaim removes derived attributes from requests.
func dropAlphaClaim(spec, old *resourcev1.ResourceClaimSpec) {
	if old != nil && derives(old) {
		return
	}
	for i := range spec.Devices.Requests {
		r := &spec.Devices.Requests[i]
		if r.Exactly != nil {
			r.Exactly.DerivedAttributes = nil
		}
		for j := range r.FirstAvailable {
			r.FirstAvailable[j].DerivedAttributes = nil
		}
	}
}

func derives(spec *resourcev1.ResourceClaimSpec) bool {
	for i := range spec.Devices.Requests {
		r := &spec.Devices.Requests[i]
		if r.Exactly != nil && len(r.Exactly.DerivedAttributes) > 0 {
			return true
		}
		for j := range r.FirstAvailable {
			if len(r.FirstAvailable[j].DerivedAttributes) > 0 {
				return true
			}
		}
	}
	return false
}

// dropAlphaResults removes left-out operations from what was allocated.
func dropAlphaResults(a, old *resourcev1.AllocationResult) {
	skips := func(r resourcev1.DeviceRequestAllocationResult) bool { return len(r.SkipNodeOperations) > 0 }
	if a == nil || old != nil && slices.ContainsFunc(old.Devices.Results, skips) {
		return
	}
	for i := range a.Devices.Results {
		a.Devices.Results[i].SkipNodeOperations = nil
	}
}

// dropDeallocated removes what drivers told of devices that the claim has no more.
func dropDeallocated(s, old *resourcev1.ResourceClaimStatus) {
	gone := allocated(old)
	for id := range allocated(s) {
		delete(gone, id)
	}
	s.Devices = slices.DeleteFunc(slices.Clone(s.Devices), func(d resourcev1.AllocatedDeviceStatus) bool { return gone[sharedID(&d)] })
	if len(s.Devices) == 0 {
		s.Devices = nil
	}
}
