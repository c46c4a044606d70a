package flowcontrol

import (
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

var priorityLevelConfigurationHalves = kind.Split(func(obj *flowcontrolv1.PriorityLevelConfiguration) (*flowcontrolv1.PriorityLevelConfigurationSpec, *flowcontrolv1.PriorityLevelConfigurationStatus) {
	return &obj.Spec, &obj.Status
})

func priorityLevelConfigurations() *registry.Resource {
	s := priorityLevelConfigurationHalves.Main()
	return &registry.Resource{
		GVR:      version.WithResource("prioritylevelconfigurations"),
		Kind:     "PriorityLevelConfiguration",
		Singular: "prioritylevelconfiguration",
		New:      kind.Make[flowcontrolv1.PriorityLevelConfiguration],
		NewList:  kind.Make[flowcontrolv1.PriorityLevelConfigurationList],
		Strategy: s,
		Status:   priorityLevelConfigurationHalves.StatusKeepingMeta(),
	}
}
