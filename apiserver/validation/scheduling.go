package validation

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var strictSelector = metav1validation.LabelSelectorValidationOptions{}

func affinity(e *errorList, a *corev1.Affinity, at *field.Path) {
	const required, preferred = "requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"
	if a == nil {
		return
	}
	if n := a.NodeAffinity; n != nil {
		p := at.Child("nodeAffinity")
		if n.RequiredDuringSchedulingIgnoredDuringExecution != nil {
			nodeSelector(e, n.RequiredDuringSchedulingIgnoredDuringExecution, p.Child(required))
		}
		for i, term := range n.PreferredDuringSchedulingIgnoredDuringExecution {
			weight(e, term.Weight, p.Child(preferred).Index(i))
			nodeTerm(e, term.Preference, true, p.Child(preferred).Index(i).Child("preference"))
		}
	}
	pods := func(p *field.Path, hard []corev1.PodAffinityTerm, soft []corev1.WeightedPodAffinityTerm) {
		for i := range hard {
			podTerm(e, &hard[i], p.Child(required).Index(i))
		}
		for i := range soft {
			weight(e, soft[i].Weight, p.Child(preferred).Index(i))
			podTerm(e, &soft[i].PodAffinityTerm, p.Child(preferred).Index(i).Child("podAffinityTerm"))
		}
	}
	if p := a.PodAffinity; p != nil {
		pods(at.Child("podAffinity"), p.RequiredDuringSchedulingIgnoredDuringExecution, p.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if p := a.PodAntiAffinity; p != nil {
		pods(at.Child("podAntiAffinity"), p.RequiredDuringSchedulingIgnoredDuringExecution, p.PreferredDuringSchedulingIgnoredDuringExecution)
	}
}

func weight(e *errorList, w int32, at *field.Path) {
	if w <= 0 || w > 100 {
		e.invalid(at.Child("weight"), w, "must be in the range 1-100")
	}
}

func nodeSelector(e *errorList, s *corev1.NodeSelector, at *field.Path) {
	terms := at.Child("nodeSelectorTerms")
	if len(s.NodeSelectorTerms) == 0 {
		e.required(terms, "must have at least one node selector term")
	}
	for i, term := range s.NodeSelectorTerms {
		nodeTerm(e, term, false, terms.Index(i))
	}
}

// nodeTerm checks a term of a node selector; anyValue admits values that no
// label can have, as upstream does in preferences.
func nodeTerm(e *errorList, term corev1.NodeSelectorTerm, anyValue bool, at *field.Path) {
	for i, r := range term.MatchExpressions {
		nodeRequirement(e, r, anyValue, at.Child("matchExpressions").Index(i))
	}
	for i, r := range term.MatchFields {
		p := at.Child("matchFields").Index(i)
		switch r.Operator {
		case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn:
			if len(r.Values) != 1 {
				e.required(p.Child("values"), "must be only one value when `operator` is 'In' or 'NotIn' for node field selector")
			}
		default:
			e.invalid(p.Child("operator"), r.Operator, "not a valid selector operator")
		}
		if r.Key != metav1.ObjectNameField {
			e.invalid(p.Child("key"), r.Key, "not a valid field selector key")
			continue
		}
		for j, value := range r.Values {
			e.invalidAll(p.Child("values").Index(j), value, apivalidation.NameIsDNSSubdomain(value, false))
		}
	}
}

func nodeRequirement(e *errorList, r corev1.NodeSelectorRequirement, anyValue bool, at *field.Path) {
	values := at.Child("values")
	switch r.Operator {
	case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn:
		if len(r.Values) == 0 {
			e.required(values, "must be specified when `operator` is 'In' or 'NotIn'")
		}
	case corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist:
		if len(r.Values) > 0 {
			e.forbidden(values, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
		}
	case corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt:
		if len(r.Values) != 1 {
			e.required(values, "must be specified single value when `operator` is 'Lt' or 'Gt'")
		}
	default:
		e.invalid(at.Child("operator"), r.Operator, "not a valid selector operator")
	}
	e.add(metav1validation.ValidateLabelName(r.Key, at.Child("key"))...)
	if anyValue {
		return
	}
	for i, value := range r.Values {
		e.invalidAll(values.Index(i), value, validation.IsValidLabelValue(value))
	}
}

func podTerm(e *errorList, t *corev1.PodAffinityTerm, at *field.Path) {
	e.add(metav1validation.ValidateLabelSelector(t.LabelSelector, strictSelector, at.Child("labelSelector"))...)
	e.add(metav1validation.ValidateLabelSelector(t.NamespaceSelector, strictSelector, at.Child("namespaceSelector"))...)
	for _, name := range t.Namespaces {
		invalidChild(e, at, "namespace", name, apivalidation.ValidateNamespaceName(name, false))
	}
	matchLabelKeys(e, t.MatchLabelKeys, t.MismatchLabelKeys, t.LabelSelector, at)
	if t.TopologyKey == "" {
		e.required(at.Child("topologyKey"), "can not be empty")
	}
	e.add(metav1validation.ValidateLabelName(t.TopologyKey, at.Child("topologyKey"))...)
}

// matchLabelKeys checks keys whose values are taken from the pod's labels
// (KEP-3633, KEP-3243). By the time of this check they were merged into the
// selector, so that a key may be in its expressions once.
func matchLabelKeys(e *errorList, match, mismatch []string, selector *metav1.LabelSelector, at *field.Path) {
	check := func(keys []string, p *field.Path) {
		if len(keys) > 0 && selector == nil {
			e.forbidden(p, "must not be specified when labelSelector is not set")
			return
		}
		for i, key := range keys {
			e.add(metav1validation.ValidateLabelName(key, p.Index(i))...)
		}
	}
	check(match, at.Child("matchLabelKeys"))
	check(mismatch, at.Child("mismatchLabelKeys"))
	if selector != nil {
		used := names{}
		for key := range selector.MatchLabels {
			used[key] = true
		}
		for _, r := range selector.MatchExpressions {
			if i := slices.Index(match, r.Key); i >= 0 && used[r.Key] {
				e.invalid(at.Index(i), r.Key, "exists in both matchLabelKeys and labelSelector")
			}
			used[r.Key] = true
		}
	}
	for i, key := range match {
		if slices.Contains(mismatch, key) {
			e.invalid(at.Child("matchLabelKeys").Index(i), key, "exists in both matchLabelKeys and mismatchLabelKeys")
		}
	}
}

func topologySpread(e *errorList, constraints []corev1.TopologySpreadConstraint, at *field.Path) {
	for i := range constraints {
		t, p := &constraints[i], at.Index(i)
		e.add(Positive(int64(t.MaxSkew), p.Child("maxSkew"))...)
		if t.TopologyKey == "" {
			e.required(p.Child("topologyKey"), "can not be empty")
		}
		oneOfOrEmpty(e, p.Child("whenUnsatisfiable"), t.WhenUnsatisfiable, corev1.DoNotSchedule, corev1.ScheduleAnyway)
		for j := range constraints[i+1:] {
			if other := &constraints[i+1+j]; other.TopologyKey == t.TopologyKey && other.WhenUnsatisfiable == t.WhenUnsatisfiable {
				e.duplicate(p.Child("{topologyKey, whenUnsatisfiable}"), fmt.Sprintf("{%v, %v}", t.TopologyKey, t.WhenUnsatisfiable))
				break
			}
		}
		if t.MinDomains != nil {
			e.add(Positive(int64(*t.MinDomains), p.Child("minDomains"))...)
			if t.WhenUnsatisfiable != corev1.DoNotSchedule {
				e.invalid(p.Child("minDomains"), t.MinDomains, fmt.Sprintf("can only use minDomains if whenUnsatisfiable=%s, not %s", corev1.DoNotSchedule, t.WhenUnsatisfiable))
			}
		}
		if t.NodeAffinityPolicy != nil {
			oneOfOrEmpty(e, p.Child("nodeAffinityPolicy"), *t.NodeAffinityPolicy, corev1.NodeInclusionPolicyHonor, corev1.NodeInclusionPolicyIgnore)
		}
		if t.NodeTaintsPolicy != nil {
			oneOfOrEmpty(e, p.Child("nodeTaintsPolicy"), *t.NodeTaintsPolicy, corev1.NodeInclusionPolicyHonor, corev1.NodeInclusionPolicyIgnore)
		}
		matchLabelKeys(e, t.MatchLabelKeys, nil, t.LabelSelector, p)
		e.add(metav1validation.ValidateLabelSelector(t.LabelSelector, strictSelector, p.Child("labelSelector"))...)
	}
}

func tolerations(e *errorList, list []corev1.Toleration, at *field.Path) {
	for i, t := range list {
		p := at.Index(i)
		if t.Key != "" {
			e.add(metav1validation.ValidateLabelName(t.Key, p.Child("key"))...)
		} else if t.Operator != corev1.TolerationOpExists {
			e.invalid(p.Child("operator"), t.Operator, "operator must be Exists when `key` is empty, which means \"match all values and all keys\"")
		}
		if t.TolerationSeconds != nil && t.Effect != corev1.TaintEffectNoExecute {
			e.invalid(p.Child("effect"), t.Effect, "effect must be 'NoExecute' when `tolerationSeconds` is set")
		}
		switch t.Operator {
		case corev1.TolerationOpEqual, "":
			if bad := validation.IsValidLabelValue(t.Value); len(bad) > 0 {
				e.invalid(p.Child("operator"), t.Value, strings.Join(bad, ";"))
			}
		case corev1.TolerationOpExists:
			if t.Value != "" {
				e.invalid(p.Child("operator"), t.Value, "value must be empty when `operator` is 'Exists'")
			}
		case corev1.TolerationOpLt, corev1.TolerationOpGt: // KEP-5471, off by default
			e.add(field.NotSupported(p.Child("operator"), t.Operator, []corev1.TolerationOperator{
				corev1.TolerationOpEqual, corev1.TolerationOpExists, corev1.TolerationOpLt, corev1.TolerationOpGt}))
		default:
			e.add(field.NotSupported(p.Child("operator"), t.Operator, []corev1.TolerationOperator{corev1.TolerationOpEqual, corev1.TolerationOpExists}))
		}
		if t.Effect != "" {
			taintEffect(e, t.Effect, p.Child("effect"))
		}
	}
}

func taintEffect(e *errorList, effect corev1.TaintEffect, at *field.Path) {
	oneOf(e, at, effect, corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute)
}

// Taints checks the taints of a node.
func Taints(list []corev1.Taint, at *field.Path) field.ErrorList {
	var e errorList
	seen := names{}
	for i, t := range list {
		p := at.Index(i)
		e.add(metav1validation.ValidateLabelName(t.Key, p.Child("key"))...)
		if bad := validation.IsValidLabelValue(t.Value); len(bad) > 0 {
			e.invalid(p.Child("value"), t.Value, strings.Join(bad, ";"))
		}
		taintEffect(&e, t.Effect, p.Child("effect"))
		if seen.seen(string(t.Effect) + "/" + t.Key) {
			twice := field.Duplicate(p, t)
			twice.Detail = "taints must be unique by key and effect pair"
			e.add(twice)
		}
	}
	return e.list
}
