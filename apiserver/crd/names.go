package crd

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

type condition = apiextensionsv1.CustomResourceDefinitionCondition

// names and conditions of a definition follow from its spec, its status and the
// names that others of its group have. judge writes them into crd, which is the
// caller's own.
func judge(crd *apiextensionsv1.CustomResourceDefinition, others []*apiextensionsv1.CustomResourceDefinition) {
	accepted := acceptNames(crd, others)
	apihelpers.SetCRDCondition(crd, accepted)
	established := apihelpers.FindCRDCondition(crd, apiextensionsv1.Established)
	switch {
	case established != nil && established.Status == apiextensionsv1.ConditionTrue:
		// Once established, a definition stays so.
	case accepted.Status == apiextensionsv1.ConditionTrue:
		apihelpers.SetCRDCondition(crd, condition{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue,
			Reason: "InitialNamesAccepted", Message: "the initial names have been accepted"})
	default:
		apihelpers.SetCRDCondition(crd, condition{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionFalse,
			Reason: "NotAccepted", Message: "not all names are accepted"})
	}
	if c := structure(crd); c != nil {
		apihelpers.SetCRDCondition(crd, *c)
	} else {
		apihelpers.RemoveCRDCondition(crd, apiextensionsv1.NonStructuralSchema)
	}
	if c := approval(crd); c != nil {
		apihelpers.SetCRDCondition(crd, *c)
	}
}

// acceptNames takes those wanted names that nobody else of the group has.
func acceptNames(crd *apiextensionsv1.CustomResourceDefinition, others []*apiextensionsv1.CustomResourceDefinition) condition {
	resources, kinds := sets.New[string](), sets.New[string]()
	for _, other := range others {
		if other.Name == crd.Name || other.Spec.Group != crd.Spec.Group {
			continue
		}
		n := &other.Status.AcceptedNames
		resources.Insert(n.Plural, n.Singular)
		resources.Insert(n.ShortNames...)
		kinds.Insert(n.Kind, n.ListKind)
	}
	wanted, have := &crd.Spec.Names, &crd.Status.AcceptedNames
	out := condition{Type: apiextensionsv1.NamesAccepted, Status: apiextensionsv1.ConditionTrue, Reason: "NoConflicts", Message: "no conflicts found"}
	refuse := func(reason string, err error) {
		out.Status, out.Reason, out.Message = apiextensionsv1.ConditionFalse, reason, err.Error()
	}
	one := func(reason, wanted string, have *string, used sets.Set[string]) {
		if wanted != *have && used.Has(wanted) {
			refuse(reason, fmt.Errorf("%q is already in use", wanted))
			return
		}
		*have = wanted
	}
	one("PluralConflict", wanted.Plural, &have.Plural, resources)
	one("SingularConflict", wanted.Singular, &have.Singular, resources)
	if !slices.Equal(wanted.ShortNames, have.ShortNames) {
		var taken []error
		for _, short := range wanted.ShortNames {
			if !slices.Contains(have.ShortNames, short) && resources.Has(short) {
				taken = append(taken, fmt.Errorf("%q is already in use", short))
			}
		}
		if len(taken) > 0 {
			refuse("ShortNamesConflict", errors.Join(taken...))
		} else {
			have.ShortNames = slices.Clone(wanted.ShortNames)
		}
	}
	one("KindConflict", wanted.Kind, &have.Kind, kinds)
	one("ListKindConflict", wanted.ListKind, &have.ListKind, kinds)
	have.Categories = slices.Clone(wanted.Categories)
	return out
}

// structure tells what is wrong with the schemas of old definitions, nil if nothing is.
func structure(crd *apiextensionsv1.CustomResourceDefinition) *condition {
	var errs field.ErrorList
	if crd.Spec.PreserveUnknownFields {
		errs = append(errs, field.Invalid(field.NewPath("spec", "preserveUnknownFields"), true, "must be false"))
	} else if established := apihelpers.FindCRDCondition(crd, apiextensionsv1.NonStructuralSchema); established == nil {
		return nil // validation has let nothing else in
	}
	for i := range crd.Spec.Versions {
		v := &crd.Spec.Versions[i]
		props, err := internal(v)
		if err != nil || props == nil {
			continue
		}
		s, err := structuralschema.NewStructural(props)
		if err != nil {
			return &condition{Type: apiextensionsv1.NonStructuralSchema, Status: apiextensionsv1.ConditionUnknown, Reason: "StructuralError",
				Message: fmt.Sprintf("failed to check validation schema for version %s: %v", v.Name, err)}
		}
		errs = append(errs, structuralschema.ValidateStructural(field.NewPath("spec", "versions").Index(i).Child("schema", "openAPIV3Schema"), s)...)
	}
	if len(errs) == 0 {
		return nil
	}
	return &condition{Type: apiextensionsv1.NonStructuralSchema, Status: apiextensionsv1.ConditionTrue, Reason: "Violations", Message: errs.ToAggregate().Error()}
}

// approval tells whether a definition of a group of Kubernetes' own is approved.
func approval(crd *apiextensionsv1.CustomResourceDefinition) *condition {
	if !apihelpers.IsProtectedCommunityGroup(crd.Spec.Group) {
		return nil
	}
	out := &condition{Type: apiextensionsv1.KubernetesAPIApprovalPolicyConformant}
	state, text := apihelpers.GetAPIApprovalState(crd.Annotations)
	out.Message = text
	switch state {
	case apihelpers.APIApprovalInvalid:
		out.Status, out.Reason = apiextensionsv1.ConditionFalse, "InvalidAnnotation"
	case apihelpers.APIApprovalMissing:
		out.Status, out.Reason = apiextensionsv1.ConditionFalse, "MissingAnnotation"
	case apihelpers.APIApproved:
		out.Status, out.Reason = apiextensionsv1.ConditionTrue, "ApprovedAnnotation"
	case apihelpers.APIApprovalBypassed:
		out.Status, out.Reason = apiextensionsv1.ConditionFalse, "UnapprovedAnnotation"
	default:
		out.Status, out.Reason = apiextensionsv1.ConditionUnknown, "UnknownAnnotation"
	}
	return out
}
