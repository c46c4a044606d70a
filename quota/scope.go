package quota

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Matches reports whether all scopes of a quota select an object.
func Matches(q *corev1.ResourceQuota, obj runtime.Object) bool {
	return !slices.ContainsFunc(Scopes(q), func(r corev1.ScopedResourceSelectorRequirement) bool { return !Selects(r, obj) })
}

// Selects reports whether one scope selects an object.
func Selects(r corev1.ScopedResourceSelectorRequirement, obj runtime.Object) bool {
	switch o := obj.(type) {
	case *corev1.Pod:
		switch r.ScopeName {
		case corev1.ResourceQuotaScopeTerminating:
			return terminating(o)
		case corev1.ResourceQuotaScopeNotTerminating:
			return !terminating(o)
		case corev1.ResourceQuotaScopeBestEffort:
			return bestEffort(o)
		case corev1.ResourceQuotaScopeNotBestEffort:
			return !bestEffort(o)
		case corev1.ResourceQuotaScopePriorityClass:
			return named(r, o.Spec.PriorityClassName)
		case corev1.ResourceQuotaScopeCrossNamespacePodAffinity:
			return acrossNamespaces(o)
		}
	case *corev1.PersistentVolumeClaim:
		if r.ScopeName == corev1.ResourceQuotaScopeVolumeAttributesClass {
			classes := attributesClasses(o)
			if len(classes) == 0 {
				return named(r, "")
			}
			return slices.ContainsFunc(classes, func(c string) bool { return named(r, c) })
		}
	}
	return false
}

// attributesClasses are the classes that a claim has, wants, or is on its way to.
func attributesClasses(c *corev1.PersistentVolumeClaim) []string {
	var names []string
	for _, name := range []*string{c.Spec.VolumeAttributesClassName, c.Status.CurrentVolumeAttributesClassName} {
		if name != nil && *name != "" {
			names = append(names, *name)
		}
	}
	if m := c.Status.ModifyVolumeStatus; m != nil && m.TargetVolumeAttributesClassName != "" {
		names = append(names, m.TargetVolumeAttributesClassName)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// named judges the name of a class; "": there is none.
func named(r corev1.ScopedResourceSelectorRequirement, name string) bool {
	switch r.Operator {
	case corev1.ScopeSelectorOpExists:
		return name != ""
	case corev1.ScopeSelectorOpDoesNotExist:
		return name == ""
	case corev1.ScopeSelectorOpIn:
		return name != "" && slices.Contains(r.Values, name)
	case corev1.ScopeSelectorOpNotIn:
		return !slices.Contains(r.Values, name)
	}
	return false
}

// Scopes are what a quota selects by: its scopes, and what they are to be in.
func Scopes(q *corev1.ResourceQuota) []corev1.ScopedResourceSelectorRequirement {
	var out []corev1.ScopedResourceSelectorRequirement
	for _, scope := range q.Spec.Scopes {
		out = append(out, corev1.ScopedResourceSelectorRequirement{ScopeName: scope, Operator: corev1.ScopeSelectorOpExists})
	}
	if q.Spec.ScopeSelector != nil {
		out = append(out, q.Spec.ScopeSelector.MatchExpressions...)
	}
	return out
}

// ScopeChanged reports whether an update moves an object between the scopes of quotas: a
// pod gets or loses its deadline, a claim another class.
func ScopeChanged(before, after runtime.Object) bool {
	switch a := after.(type) {
	case *corev1.Pod:
		b, ok := before.(*corev1.Pod)
		return ok && terminating(b) != terminating(a)
	case *corev1.PersistentVolumeClaim:
		b, ok := before.(*corev1.PersistentVolumeClaim)
		return ok && !slices.Equal(attributesClasses(b), attributesClasses(a))
	}
	return false
}

func terminating(pod *corev1.Pod) bool {
	return pod.Spec.ActiveDeadlineSeconds != nil && *pod.Spec.ActiveDeadlineSeconds >= 0
}

// bestEffort reports whether nothing of a pod asks for processor or memory.
func bestEffort(pod *corev1.Pod) bool {
	if pod.Status.QOSClass != "" {
		return pod.Status.QOSClass == corev1.PodQOSBestEffort
	}
	asks := func(r *corev1.ResourceRequirements) bool {
		for _, list := range []corev1.ResourceList{r.Requests, r.Limits} {
			for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
				if q := list[name]; q.Sign() > 0 {
					return true
				}
			}
		}
		return false
	}
	if pod.Spec.Resources != nil && asks(pod.Spec.Resources) {
		return false
	}
	return !slices.ContainsFunc(slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers), func(c corev1.Container) bool { return asks(&c.Resources) })
}

func acrossNamespaces(pod *corev1.Pod) bool {
	a := pod.Spec.Affinity
	if a == nil {
		return false
	}
	var terms []corev1.PodAffinityTerm
	add := func(required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm) {
		terms = append(terms, required...)
		for _, w := range preferred {
			terms = append(terms, w.PodAffinityTerm)
		}
	}
	if p := a.PodAffinity; p != nil {
		add(p.RequiredDuringSchedulingIgnoredDuringExecution, p.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if p := a.PodAntiAffinity; p != nil {
		add(p.RequiredDuringSchedulingIgnoredDuringExecution, p.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	return slices.ContainsFunc(terms, func(t corev1.PodAffinityTerm) bool { return len(t.Namespaces) > 0 || t.NamespaceSelector != nil })
}

// counted are the amounts that every container must name when a quota limits them.
var counted = []corev1.ResourceName{
	corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceRequestsCPU, corev1.ResourceRequestsMemory,
	corev1.ResourceLimitsCPU, corev1.ResourceLimitsMemory,
}

// Missing returns which of the hard limits' amounts the containers of a pod do not name,
// as a refusal tells it: "cpu for: a,b; memory for: b". Empty: none.
func Missing(pod *corev1.Pod, hard corev1.ResourceList) string {
	var whole corev1.ResourceList
	if r := pod.Spec.Resources; r != nil {
		whole = corev1.ResourceList{}
		computeUsage(whole, r.Requests, r.Limits)
	}
	missing := map[corev1.ResourceName][]string{}
	for _, c := range slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers) {
		own := corev1.ResourceList{}
		computeUsage(own, c.Resources.Requests, c.Resources.Limits)
		for _, name := range counted {
			if _, limited := hard[name]; !limited {
				continue
			}
			if _, ok := own[name]; ok {
				continue
			}
			if _, ok := whole[name]; !ok {
				missing[name] = append(missing[name], c.Name)
			}
		}
	}
	var parts []string
	for _, name := range counted {
		if names := missing[name]; len(names) > 0 {
			slices.Sort(names)
			parts = append(parts, fmt.Sprintf("%s for: %s", name, strings.Join(names, ",")))
		}
	}
	slices.Sort(parts)
	return strings.Join(parts, "; ")
}
