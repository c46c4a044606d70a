package printers

import (
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
)

func deviceTables() tables {
	return tables{
		"deviceclasses": table(columns{name(), age()},
			func(c *resourcev1.DeviceClass) []any { return []any{c.Name, old(c)} }),
		"resourceclaims": table(columns{name(), text("State", "Pending, allocated, reserved, deleted."), age()},
			func(c *resourcev1.ResourceClaim) []any { return []any{c.Name, claimState(c), old(c)} }),
		"resourceclaimtemplates": table(columns{name(), age()},
			func(t *resourcev1.ResourceClaimTemplate) []any { return []any{t.Name, old(t)} }),
		"resourceslices": table(columns{
			name(),
			text("Node", doc(resourcev1.ResourceSliceSpec{}, "nodeName")),
			text("Driver", doc(resourcev1.ResourceSliceSpec{}, "driver")),
			text("Pool", doc(resourcev1.ResourcePool{}, "name")),
			age(),
		}, func(s *resourcev1.ResourceSlice) []any {
			return []any{s.Name, orNil(s.Spec.NodeName, ""), s.Spec.Driver, s.Spec.Pool.Name, old(s)}
		}),
		"devicetaintrules": table(columns{
			name(),
			text("Key", doc(resourcev1.DeviceTaint{}, "key")),
			text("Value", doc(resourcev1.DeviceTaint{}, "value")),
			text("Effect", doc(resourcev1.DeviceTaint{}, "effect")),
			text("TimeAdded", doc(resourcev1.DeviceTaint{}, "timeAdded")),
			age(),
		}, func(r *resourcev1.DeviceTaintRule) []any {
			added := ""
			if t := r.Spec.Taint.TimeAdded; t != nil {
				added = since(*t)
			}
			return []any{r.Name, r.Spec.Taint.Key, r.Spec.Taint.Value, string(r.Spec.Taint.Effect), added, old(r)}
		}),
	}
}

func claimState(c *resourcev1.ResourceClaim) string {
	var states []string
	if c.DeletionTimestamp != nil {
		states = append(states, "deleted")
	}
	switch {
	case c.Status.Allocation == nil && c.DeletionTimestamp == nil:
		states = append(states, "pending")
	case c.Status.Allocation != nil:
		states = append(states, "allocated")
		if len(c.Status.ReservedFor) > 0 {
			states = append(states, "reserved")
		}
	}
	return strings.Join(states, ",")
}
