package flowcontrol

import (
	"context"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

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
	s.ValidateCreate = func(_ context.Context, fs *flowcontrolv1.FlowSchema) field.ErrorList { return flowSchema(fs) }
	s.ValidateChange = func(_ context.Context, fs, _ *flowcontrolv1.FlowSchema) field.ErrorList { return flowSchema(fs) }
	status := flowSchemaHalves.StatusKeepingMeta()
	status.ValidateChange = func(_ context.Context, fs, _ *flowcontrolv1.FlowSchema) field.ErrorList { return flowSchemaStatus(fs) }
	return &registry.Resource{
		GVR:      version.WithResource("flowschemas"),
		Kind:     "FlowSchema",
		Singular: "flowschema",
		New:      kind.Make[flowcontrolv1.FlowSchema],
		NewList:  kind.Make[flowcontrolv1.FlowSchemaList],
		Strategy: s,
		Status:   status,
	}
}
