package flowcontrol

import (
	"context"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

var priorityLevelConfigurationHalves = kind.Split(func(obj *flowcontrolv1.PriorityLevelConfiguration) (*flowcontrolv1.PriorityLevelConfigurationSpec, *flowcontrolv1.PriorityLevelConfigurationStatus) {
	return &obj.Spec, &obj.Status
})

func priorityLevelConfigurations() *registry.Resource {
	s := priorityLevelConfigurationHalves.Main()
	s.DefaultFunc = defaultPriorityLevel
	s.ValidateCreate = func(_ context.Context, pl *flowcontrolv1.PriorityLevelConfiguration) field.ErrorList {
		return priorityLevel(pl)
	}
	s.ValidateChange = func(_ context.Context, pl, _ *flowcontrolv1.PriorityLevelConfiguration) field.ErrorList {
		return priorityLevel(pl)
	}
	status := priorityLevelConfigurationHalves.StatusKeepingMeta()
	status.ValidateChange = func(_ context.Context, pl, _ *flowcontrolv1.PriorityLevelConfiguration) field.ErrorList {
		return priorityLevelStatus(pl)
	}
	return &registry.Resource{
		GVR:      version.WithResource("prioritylevelconfigurations"),
		Kind:     "PriorityLevelConfiguration",
		Singular: "prioritylevelconfiguration",
		New:      kind.Make[flowcontrolv1.PriorityLevelConfiguration],
		NewList:  kind.Make[flowcontrolv1.PriorityLevelConfigurationList],
		Strategy: s,
		Status:   status,
	}
}

func defaultPriorityLevel(level *flowcontrolv1.PriorityLevelConfiguration) {
	set := func(p **int32, value int32) {
		if *p == nil {
			*p = &value
		}
	}
	if e := level.Spec.Exempt; e != nil {
		set(&e.NominalConcurrencyShares, 0)
		set(&e.LendablePercent, 0)
	}
	l := level.Spec.Limited
	if l == nil {
		return
	}
	set(&l.NominalConcurrencyShares, 30)
	set(&l.LendablePercent, 0)
	if q := l.LimitResponse.Queuing; q != nil {
		for _, n := range []struct {
			field *int32
			value int32
		}{{&q.HandSize, 8}, {&q.Queues, 64}, {&q.QueueLengthLimit, 50}} {
			if *n.field == 0 {
				*n.field = n.value
			}
		}
	}
}
