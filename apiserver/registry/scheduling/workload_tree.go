package scheduling

import (
	"fmt"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// workloadTree checks the templates of a workload among themselves: their names are
// unique, the tree is not too deep and has no empty groups, all have one priority.
func workloadTree(spec *schedulingv1beta1.WorkloadSpec, at *field.Path) field.ErrorList {
	names := map[string]bool{}
	for i := range spec.PodGroupTemplates {
		names[spec.PodGroupTemplates[i].Name] = true // that they are unique is a rule of the list
	}
	composites, p := spec.CompositePodGroupTemplates, at.Child("compositePodGroupTemplates")
	errs := groupNames(composites, p, names)
	for i := range composites {
		if depth(&composites[i]) > schedulingv1beta1.WorkloadMaxTreeDepth-1 {
			errs = append(errs, field.Invalid(p.Index(i), composites[i].CompositePodGroupTemplates,
				fmt.Sprintf("maximum template hierarchy depth is %d", schedulingv1beta1.WorkloadMaxTreeDepth)))
		}
	}
	errs = append(errs, onePriority(spec, at)...)
	return append(errs, noEmptyGroup(composites, p)...)
}

// groupNames finds names that are in other lists, too.
func groupNames(list []schedulingv1beta1.CompositePodGroupTemplate, at *field.Path, names map[string]bool) field.ErrorList {
	var errs field.ErrorList
	for i := range list {
		if names[list[i].Name] {
			errs = append(errs, field.Duplicate(at.Index(i).Child("name"), list[i].Name))
		}
	}
	for i := range list {
		names[list[i].Name] = true
	}
	for i := range list {
		p, groups := at.Index(i), list[i].PodGroupTemplates
		for j := range groups {
			if names[groups[j].Name] {
				errs = append(errs, field.Duplicate(p.Child("podGroupTemplates").Index(j).Child("name"), groups[j].Name))
			}
		}
		for j := range groups {
			names[groups[j].Name] = true
		}
		errs = append(errs, groupNames(list[i].CompositePodGroupTemplates, p.Child("compositePodGroupTemplates"), names)...)
	}
	return errs
}

func depth(t *schedulingv1beta1.CompositePodGroupTemplate) int {
	deepest := 0
	for i := range t.CompositePodGroupTemplates {
		deepest = max(deepest, depth(&t.CompositePodGroupTemplates[i]))
	}
	return deepest + 1
}

func noEmptyGroup(list []schedulingv1beta1.CompositePodGroupTemplate, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range list {
		if len(list[i].PodGroupTemplates)+len(list[i].CompositePodGroupTemplates) == 0 {
			errs = append(errs, field.Invalid(at.Index(i), list[i].Name, "must have at least one child PodGroupTemplate or CompositePodGroupTemplate"))
		}
		errs = append(errs, noEmptyGroup(list[i].CompositePodGroupTemplates, at.Index(i).Child("compositePodGroupTemplates"))...)
	}
	return errs
}

// onePriority wants all templates to have the same priority and class.
func onePriority(spec *schedulingv1beta1.WorkloadSpec, at *field.Path) field.ErrorList {
	type priority struct {
		class string
		set   bool
		value int32
	}
	var first *priority
	same := func(class string, value *int32) bool {
		p := priority{class: class}
		if value != nil {
			p.set, p.value = true, *value
		}
		if first == nil {
			first = &p
		}
		return *first == p
	}
	all := func(list []schedulingv1beta1.PodGroupTemplate) bool {
		for i := range list {
			if !same(list[i].PriorityClassName, list[i].Priority) {
				return false
			}
		}
		return true
	}
	if !all(spec.PodGroupTemplates) {
		return field.ErrorList{field.Invalid(at, nil, "detected multiple priority configurations")}
	}
	var below func(list []schedulingv1beta1.CompositePodGroupTemplate) bool
	below = func(list []schedulingv1beta1.CompositePodGroupTemplate) bool {
		for i := range list {
			t := &list[i]
			if !same(t.PriorityClassName, t.Priority) || !below(t.CompositePodGroupTemplates) || !all(t.PodGroupTemplates) {
				return false
			}
		}
		return true
	}
	if !below(spec.CompositePodGroupTemplates) {
		return field.ErrorList{field.Invalid(at, nil, "all priority and priorityClassName values must be identical, detected multiple values")}
	}
	return nil
}
