package resource

import (
	"context"

	resourcev1 "k8s.io/api/resource/v1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

var deviceTaintRuleHalves = kind.Split(func(obj *resourcev1.DeviceTaintRule) (*resourcev1.DeviceTaintRuleSpec, *resourcev1.DeviceTaintRuleStatus) {
	return &obj.Spec, &obj.Status
})

func deviceTaintRules() *registry.Resource {
	beta2 := kind.Alike[resourcev1beta2.DeviceTaintRule, resourcev1beta2.DeviceTaintRuleList, resourcev1.DeviceTaintRule](resourcev1beta2.SchemeGroupVersion)
	s := deviceTaintRuleHalves.Main()
	s.DefaultFunc = func(rule *resourcev1.DeviceTaintRule) { stamp(&rule.Spec.Taint) }
	s.ValidateCreate = func(_ context.Context, r *resourcev1.DeviceTaintRule) field.ErrorList { return taintRule(&r.Spec, nil) }
	s.ValidateChange = func(_ context.Context, r, old *resourcev1.DeviceTaintRule) field.ErrorList {
		return taintRule(&r.Spec, &old.Spec)
	}
	status := deviceTaintRuleHalves.StatusKeepingMeta()
	status.ValidateChange = func(_ context.Context, r, _ *resourcev1.DeviceTaintRule) field.ErrorList {
		at := field.NewPath("status", "conditions")
		errs := metav1validation.ValidateConditions(r.Status.Conditions, at)
		if n := len(r.Status.Conditions); n > resourcev1.DeviceTaintRuleStatusMaxConditions {
			errs = append(errs, field.TooMany(at, n, resourcev1.DeviceTaintRuleStatusMaxConditions))
		}
		return errs
	}
	return &registry.Resource{
		GVR:      version.WithResource("devicetaintrules"),
		Kind:     "DeviceTaintRule",
		Singular: "devicetaintrule",
		New:      kind.Make[resourcev1.DeviceTaintRule],
		NewList:  kind.Make[resourcev1.DeviceTaintRuleList],
		Strategy: s,
		Also:     []registry.Served{beta2},
		StoredAs: &beta2,
		Status:   status,
	}
}
