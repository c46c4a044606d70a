package apps

import (
	"context"
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
	"github.com/periplus/periplus/apiserver/validation"
)

func controllerRevisions() *registry.Resource {
	return &registry.Resource{
		GVR:        version.WithResource("controllerrevisions"),
		Kind:       "ControllerRevision",
		Singular:   "controllerrevision",
		Namespaced: true,
		New:        kind.Make[appsv1.ControllerRevision],
		NewList:    kind.Make[appsv1.ControllerRevisionList],
		Strategy: registry.Funcs[*appsv1.ControllerRevision]{
			ValidateCreate: func(_ context.Context, r *appsv1.ControllerRevision) field.ErrorList {
				errs := validation.Nonnegative(r.Revision, field.NewPath("revision"))
				return append(errs, revisionData(r.Data.Raw, field.NewPath("data"))...)
			},
			ValidateChange: func(_ context.Context, r, old *appsv1.ControllerRevision) field.ErrorList {
				errs := validation.Nonnegative(r.Revision, field.NewPath("revision"))
				return append(errs, validation.Immutable(r.Data, old.Data, field.NewPath("data"))...)
			},
		},
	}
}

func revisionData(raw []byte, at *field.Path) field.ErrorList {
	var v any
	if raw != nil {
		if err := json.Unmarshal(raw, &v); err != nil {
			return field.ErrorList{field.Invalid(at, "<value omitted>", fmt.Sprintf("error parsing data: %v", err))}
		}
	}
	if v == nil {
		return field.ErrorList{field.Required(at, "data is mandatory")}
	}
	if _, ok := v.(map[string]any); !ok {
		return field.ErrorList{field.Required(at, "data must be a valid JSON object")}
	}
	return nil
}
