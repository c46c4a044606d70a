package scheduling

import (
	"context"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/operation"
	"k8s.io/apimachinery/pkg/api/validate"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// rules are those that upstream generates from the markers of the types. What has not
// changed is not looked at again.
type rules operation.Operation

var updateRules = rules{Type: operation.Update}

const highestPriority = 1000000000 // of users

func (r rules) op() operation.Operation { return operation.Operation(r) }

// same reports whether a value need not be looked at. old counts if it is of the same thing.
func (r rules) same(obj, old any, correlated bool) bool {
	return r.Type == operation.Update && correlated && equality.Semantic.DeepEqual(obj, old)
}

// A union is a struct of which exactly one field is set.
var (
	policies    = validate.NewUnionMembership(validate.NewUnionMember("basic"), validate.NewUnionMember("gang"))
	modes       = validate.NewUnionMembership(validate.NewUnionMember("single"), validate.NewUnionMember("all"))
	claimed     = validate.NewUnionMembership(validate.NewUnionMember("resourceClaimName"), validate.NewUnionMember("resourceClaimTemplateName"))
	workloadsOf = validate.NewUnionMembership(validate.NewUnionMember("podGroupTemplates"), validate.NewUnionMember("compositePodGroupTemplates"))
)

// longName checks an optional name.
func (r rules) longName(at *field.Path, name, old *string, correlated bool) field.ErrorList {
	if name == nil || r.same(name, old, correlated) {
		return nil
	}
	return validate.LongName(context.Background(), r.op(), at, name, old)
}

func (r rules) name(at *field.Path, name, old *string, valid func(context.Context, operation.Operation, *field.Path, *string, *string) field.ErrorList) field.ErrorList {
	if r.same(name, old, old != nil) {
		return nil
	}
	if errs := validate.RequiredValue(context.Background(), r.op(), at, name, old); len(errs) > 0 {
		return errs
	}
	return valid(context.Background(), r.op(), at, name, old)
}

// frozen refuses a change; it reports nothing for a value of something new.
func frozen[T any](r rules, at *field.Path, obj, old T) field.ErrorList {
	return validate.Immutable(context.Background(), r.op(), at, obj, old)
}

// off refuses what belongs to a feature that is off.
func off[T any](r rules, at *field.Path, obj, old *T, correlated bool) field.ErrorList {
	if r.same(obj, old, correlated) {
		return nil
	}
	errs := validate.ForbiddenPointer(context.Background(), r.op(), at, obj, old)
	return append(errs, frozen(r, at, obj, old)...)
}

func (r rules) podGroup(at *field.Path, spec, old *schedulingv1beta1.PodGroupSpec) field.ErrorList {
	known := old != nil
	if !known {
		old = &schedulingv1beta1.PodGroupSpec{}
	} else if r.same(spec, old, true) {
		return nil
	}
	errs := off(r, at.Child("parentCompositePodGroupName"), spec.ParentCompositePodGroupName, old.ParentCompositePodGroupName, known)
	if spec.ParentCompositePodGroupName != nil && spec.WorkloadRef == nil && !known {
		errs = append(errs, field.Required(at.Child("workloadRef"), "must be set when parentCompositePodGroupName is set"))
	}
	errs = append(errs, r.workloadRef(at.Child("workloadRef"), spec.WorkloadRef, old.WorkloadRef, known)...)
	var policy *schedulingv1beta1.PodGroupSchedulingPolicy
	if known {
		policy = &old.SchedulingPolicy
	}
	errs = append(errs, r.policy(at.Child("schedulingPolicy"), &spec.SchedulingPolicy, policy)...)
	errs = append(errs, off(r, at.Child("schedulingConstraints"), spec.SchedulingConstraints, old.SchedulingConstraints, known)...)
	errs = append(errs, r.claims(at.Child("resourceClaims"), spec.ResourceClaims, old.ResourceClaims, known)...)
	errs = append(errs, r.mode(at.Child("disruptionMode"), spec.DisruptionMode, old.DisruptionMode, known)...)
	errs = append(errs, r.priority(at, spec.PriorityClassName, old.PriorityClassName, spec.Priority, old.Priority, known)...)
	return append(errs, off(r, at.Child("preemptionPolicy"), spec.PreemptionPolicy, old.PreemptionPolicy, known)...)
}

func (r rules) workloadRef(at *field.Path, ref, old *schedulingv1beta1.WorkloadReference, known bool) field.ErrorList {
	if r.same(ref, old, known) {
		return nil
	}
	if errs := frozen(r, at, ref, old); len(errs) > 0 || ref == nil {
		return errs
	}
	errs := r.name(at.Child("workloadName"), &ref.WorkloadName, nil, validate.LongName[string])
	return append(errs, r.name(at.Child("templateName"), &ref.TemplateName, nil, validate.ShortName[string])...)
}

func (r rules) policy(at *field.Path, policy, old *schedulingv1beta1.PodGroupSchedulingPolicy) field.ErrorList {
	ctx := context.Background()
	known := old != nil
	if r.same(policy, old, known) {
		return nil
	}
	errs := validate.Union(ctx, r.op(), at, policy, old, policies,
		func(p *schedulingv1beta1.PodGroupSchedulingPolicy) bool { return p != nil && p.Basic != nil },
		func(p *schedulingv1beta1.PodGroupSchedulingPolicy) bool { return p != nil && p.Gang != nil })
	if !known {
		old = &schedulingv1beta1.PodGroupSchedulingPolicy{}
	}
	if !r.same(policy.Basic, old.Basic, known) {
		errs = append(errs, frozen(r, at.Child("basic"), policy.Basic, old.Basic)...)
	}
	if r.same(policy.Gang, old.Gang, known) {
		return errs
	}
	gang := at.Child("gang")
	e := validate.UpdatePointer(ctx, r.op(), gang, policy.Gang, old.Gang, validate.NoSet, validate.NoUnset)
	if errs = append(errs, e...); len(e) > 0 || policy.Gang == nil {
		return errs
	}
	least, count := gang.Child("minCount"), &policy.Gang.MinCount
	if e := validate.RequiredValue(ctx, r.op(), least, count, nil); len(e) > 0 {
		return append(errs, e...)
	}
	return append(errs, validate.Minimum(ctx, r.op(), least, count, nil, 1)...)
}

func (r rules) mode(at *field.Path, mode, old *schedulingv1beta1.DisruptionMode, known bool) field.ErrorList {
	if r.same(mode, old, known) {
		return nil
	}
	if errs := frozen(r, at, mode, old); len(errs) > 0 || mode == nil {
		return errs
	}
	return validate.Union(context.Background(), r.op(), at, mode, old, modes,
		func(m *schedulingv1beta1.DisruptionMode) bool { return m != nil && m.Single != nil },
		func(m *schedulingv1beta1.DisruptionMode) bool { return m != nil && m.All != nil })
}

func (r rules) priority(at *field.Path, class, oldClass string, value, old *int32, known bool) field.ErrorList {
	ctx := context.Background()
	var errs field.ErrorList
	if p := at.Child("priorityClassName"); !r.same(class, oldClass, known) {
		if errs = frozen(r, p, &class, &oldClass); len(errs) == 0 && class != "" {
			errs = validate.LongName(ctx, r.op(), p, &class, nil)
		}
	}
	p := at.Child("priority")
	if r.same(value, old, known) {
		return errs
	}
	if e := frozen(r, p, value, old); len(e) > 0 || value == nil {
		return append(errs, e...)
	}
	return append(errs, validate.Maximum(ctx, r.op(), p, value, old, highestPriority)...)
}

func (r rules) claims(at *field.Path, claims, old []schedulingv1beta1.PodGroupResourceClaim, known bool) field.ErrorList {
	ctx := context.Background()
	if r.same(claims, old, known) {
		return nil
	}
	errs := frozen(r, at, claims, old)
	errs = append(errs, validate.MaxItems(ctx, r.op(), at, claims, old, schedulingv1beta1.MaxPodGroupResourceClaims)...)
	if len(errs) > 0 {
		return errs
	}
	named := func(a, b *schedulingv1beta1.PodGroupResourceClaim) bool { return a.Name == b.Name }
	errs = validate.ValSliceUnique(ctx, r.op(), at, claims, old, named)
	return append(errs, validate.EachValSliceVal(ctx, r.op(), at, claims, old, named, validate.SemanticDeepEqual,
		func(ctx context.Context, op operation.Operation, at *field.Path, c, _ *schedulingv1beta1.PodGroupResourceClaim) field.ErrorList {
			errs := validate.Union(ctx, op, at, c, nil, claimed,
				func(c *schedulingv1beta1.PodGroupResourceClaim) bool { return c != nil && c.ResourceClaimName != nil },
				func(c *schedulingv1beta1.PodGroupResourceClaim) bool {
					return c != nil && c.ResourceClaimTemplateName != nil
				})
			errs = append(errs, r.name(at.Child("name"), &c.Name, nil, validate.ShortName[string])...)
			errs = append(errs, r.longName(at.Child("resourceClaimName"), c.ResourceClaimName, nil, false)...)
			return append(errs, r.longName(at.Child("resourceClaimTemplateName"), c.ResourceClaimTemplateName, nil, false)...)
		})...)
}

func (r rules) workload(at *field.Path, spec, old *schedulingv1beta1.WorkloadSpec) field.ErrorList {
	ctx := context.Background()
	known := old != nil
	if r.same(spec, old, known) {
		return nil
	}
	errs := validate.Union(ctx, r.op(), at, spec, old, workloadsOf,
		func(s *schedulingv1beta1.WorkloadSpec) bool { return s != nil && len(s.PodGroupTemplates) > 0 },
		func(s *schedulingv1beta1.WorkloadSpec) bool { return s != nil && len(s.CompositePodGroupTemplates) > 0 })
	if !known {
		old = &schedulingv1beta1.WorkloadSpec{}
	}
	errs = append(errs, r.controllerRef(at.Child("controllerRef"), spec.ControllerRef, old.ControllerRef, known)...)
	if p := at.Child("compositePodGroupTemplates"); !r.same(spec.CompositePodGroupTemplates, old.CompositePodGroupTemplates, known) {
		errs = append(errs, validate.ForbiddenSlice(ctx, r.op(), p, spec.CompositePodGroupTemplates, old.CompositePodGroupTemplates)...)
	}
	list, before, p := spec.PodGroupTemplates, old.PodGroupTemplates, at.Child("podGroupTemplates")
	if r.same(list, before, known) {
		return errs
	}
	named := func(a, b *schedulingv1beta1.PodGroupTemplate) bool { return a.Name == b.Name }
	e := validate.MaxItems(ctx, r.op(), p, list, before, schedulingv1beta1.WorkloadMaxPodGroupTemplates)
	e = append(e, validate.ValSliceUpdate(ctx, r.op(), p, list, before, named, validate.NoAddItem, validate.NoRemoveItem)...)
	if errs = append(errs, e...); len(e) > 0 {
		return errs
	}
	errs = append(errs, validate.ValSliceUnique(ctx, r.op(), p, list, before, named)...)
	return append(errs, validate.EachValSliceVal(ctx, r.op(), p, list, before, named, validate.SemanticDeepEqual,
		func(_ context.Context, _ operation.Operation, at *field.Path, t, old *schedulingv1beta1.PodGroupTemplate) field.ErrorList {
			return r.template(at, t, old)
		})...)
}

func (r rules) controllerRef(at *field.Path, ref, old *schedulingv1beta1.TypedLocalObjectReference, known bool) field.ErrorList {
	if r.same(ref, old, known) {
		return nil
	}
	if errs := frozen(r, at, ref, old); len(errs) > 0 || ref == nil {
		return errs
	}
	var errs field.ErrorList
	if ref.APIGroup != "" {
		errs = validate.LongName(context.Background(), r.op(), at.Child("apiGroup"), &ref.APIGroup, nil)
	}
	errs = append(errs, r.name(at.Child("kind"), &ref.Kind, nil, validate.PathSegmentName[string])...)
	return append(errs, r.name(at.Child("name"), &ref.Name, nil, validate.PathSegmentName[string])...)
}

func (r rules) template(at *field.Path, t, old *schedulingv1beta1.PodGroupTemplate) field.ErrorList {
	known := old != nil
	var policy *schedulingv1beta1.PodGroupSchedulingPolicy
	var name *string
	if known {
		policy, name = &old.SchedulingPolicy, &old.Name
	} else {
		old = &schedulingv1beta1.PodGroupTemplate{}
	}
	errs := r.name(at.Child("name"), &t.Name, name, validate.ShortName[string])
	errs = append(errs, r.policy(at.Child("schedulingPolicy"), &t.SchedulingPolicy, policy)...)
	errs = append(errs, off(r, at.Child("schedulingConstraints"), t.SchedulingConstraints, old.SchedulingConstraints, known)...)
	errs = append(errs, r.claims(at.Child("resourceClaims"), t.ResourceClaims, old.ResourceClaims, known)...)
	errs = append(errs, r.mode(at.Child("disruptionMode"), t.DisruptionMode, old.DisruptionMode, known)...)
	errs = append(errs, r.priority(at, t.PriorityClassName, old.PriorityClassName, t.Priority, old.Priority, known)...)
	return append(errs, off(r, at.Child("preemptionPolicy"), t.PreemptionPolicy, old.PreemptionPolicy, known)...)
}
