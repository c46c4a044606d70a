package flowcontrol

import (
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

var flowSchemaHalves = kind.Split(func(obj *flowcontrolv1.FlowSchema) (*flowcontrolv1.FlowSchemaSpec, *flowcontrolv1.FlowSchemaStatus) {
	return &obj.Spec, &obj.Status
})

func flowSchemas() *registry.Resource {
	s := flowSchemaHalves.Main()
	s.DefaultFunc = func(schema *flowcontrolv1.FlowSchema) {
		if schema.Spec.MatchingPrecedence == 0 {
			schema.Spec.MatchingPrecedence = 1000
		}
	}
	return &registry.Resource{
		GVR:      version.WithResource("flowschemas"),
		Kind:     "FlowSchema",
		Singular: "flowschema",
		New:      kind.Make[flowcontrolv1.FlowSchema],
		NewList:  kind.Make[flowcontrolv1.FlowSchemaList],
		Strategy: s,
		Status:   flowSchemaHalves.StatusKeepingMeta(),
	}
}
