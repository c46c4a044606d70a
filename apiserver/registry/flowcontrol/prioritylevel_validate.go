package flowcontrol

import (
	"fmt"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	flowcontrolv1beta3 "k8s.io/api/flowcontrol/v1beta3"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/apis/flowcontrol/bootstrap"
	"k8s.io/apiserver/pkg/util/shufflesharding"

	"github.com/periplus/periplus/apiserver/validation"
)

func priorityLevel(pl *flowcontrolv1.PriorityLevelConfiguration) (errs field.ErrorList) {
	if _, ok := pl.Annotations[flowcontrolv1beta3.PriorityLevelPreserveZeroConcurrencySharesKey]; ok {
		errs = append(errs, field.Forbidden(field.NewPath("metadata", "annotations"),
			fmt.Sprintf("annotation '%s' is forbidden", flowcontrolv1beta3.PriorityLevelPreserveZeroConcurrencySharesKey)))
	}
	spec, at := &pl.Spec, field.NewPath("spec")
	exempt := spec.Type == flowcontrolv1.PriorityLevelEnablementExempt
	if (pl.Name == flowcontrolv1.PriorityLevelConfigurationNameExempt) != exempt {
		errs = append(errs, field.Invalid(at.Child("type"), spec.Type, "must be 'Exempt' if and only if `name` is 'exempt'"))
	}
	switch spec.Type {
	case flowcontrolv1.PriorityLevelEnablementExempt:
		if e := spec.Exempt; e != nil {
			errs = append(errs, shares(e.NominalConcurrencyShares, e.LendablePercent, at.Child("exempt"))...)
		}
	case flowcontrolv1.PriorityLevelEnablementLimited:
		if spec.Limited != nil {
			errs = append(errs, limited(spec.Limited, at.Child("limited"))...)
		}
	case "":
		errs = append(errs, field.Required(at.Child("type"), ""))
	default:
		errs = append(errs, field.NotSupported(at.Child("type"), spec.Type,
			[]flowcontrolv1.PriorityLevelEnablement{flowcontrolv1.PriorityLevelEnablementExempt, flowcontrolv1.PriorityLevelEnablementLimited}))
	}
	errs = append(errs, union(spec, at)...)
	errs = append(errs, mandatoryLevel(pl, at)...)
	return append(errs, priorityLevelStatus(pl)...)
}

// union checks that what is set is what the types say, also inside of a part that
// should not be there.
func union(spec *flowcontrolv1.PriorityLevelConfigurationSpec, at *field.Path) (errs field.ErrorList) {
	part := func(has, wanted, must bool, at *field.Path) {
		if has && !wanted {
			errs = append(errs, field.Forbidden(at, ""))
		}
		if !has && wanted && must {
			errs = append(errs, field.Required(at, ""))
		}
	}
	part(spec.Exempt != nil, spec.Type == flowcontrolv1.PriorityLevelEnablementExempt, false, at.Child("exempt"))
	part(spec.Limited != nil, spec.Type == flowcontrolv1.PriorityLevelEnablementLimited, true, at.Child("limited"))
	if spec.Limited != nil {
		r, p := &spec.Limited.LimitResponse, at.Child("limited", "limitResponse")
		part(r.Queuing != nil, r.Type == flowcontrolv1.LimitResponseTypeQueue, true, p.Child("queuing"))
		if r.Type == "" {
			errs = append(errs, field.Required(p.Child("type"), ""))
		}
	}
	return errs
}

func priorityLevelStatus(pl *flowcontrolv1.PriorityLevelConfiguration) field.ErrorList {
	return conditions(len(pl.Status.Conditions), func(i int) string { return string(pl.Status.Conditions[i].Type) })
}

// mandatoryLevel refuses changes to the levels that every server has; of the exempt
// one its own part may change.
func mandatoryLevel(pl *flowcontrolv1.PriorityLevelConfiguration, at *field.Path) field.ErrorList {
	for _, m := range bootstrap.MandatoryPriorityLevelConfigurations {
		if m.Name != pl.Name {
			continue
		}
		have, detail := pl.Spec, "spec of '%s' must equal the fixed value"
		if pl.Name == flowcontrolv1.PriorityLevelConfigurationNameExempt {
			have.Exempt, detail = m.Spec.Exempt, "spec of '%s' except the 'spec.exempt' field must equal the fixed value"
		}
		if !validation.Equal(have, m.Spec) {
			return field.ErrorList{field.Invalid(at, pl.Spec, fmt.Sprintf(detail, pl.Name))}
		}
	}
	return nil
}

func shares(nominal, lendable *int32, at *field.Path) (errs field.ErrorList) {
	if nominal != nil && *nominal < 0 {
		errs = append(errs, field.Invalid(at.Child("nominalConcurrencyShares"), *nominal, "must be a non-negative integer"))
	}
	if lendable != nil && (*lendable < 0 || *lendable > 100) {
		errs = append(errs, field.Invalid(at.Child("lendablePercent"), *lendable, "must be between 0 and 100, inclusive"))
	}
	return errs
}

func limited(l *flowcontrolv1.LimitedPriorityLevelConfiguration, at *field.Path) field.ErrorList {
	errs := shares(l.NominalConcurrencyShares, l.LendablePercent, at)
	if p := l.BorrowingLimitPercent; p != nil && *p < 0 {
		errs = append(errs, field.Invalid(at.Child("borrowingLimitPercent"), *p, "if specified, must be a non-negative integer"))
	}
	response, p := &l.LimitResponse, at.Child("limitResponse")
	switch response.Type {
	case flowcontrolv1.LimitResponseTypeReject:
	case flowcontrolv1.LimitResponseTypeQueue:
		if response.Queuing != nil {
			errs = append(errs, queuing(response.Queuing, p.Child("queuing"))...)
		}
	case "": // as above
	default:
		errs = append(errs, field.NotSupported(p.Child("type"), response.Type,
			[]flowcontrolv1.LimitResponseType{flowcontrolv1.LimitResponseTypeQueue, flowcontrolv1.LimitResponseTypeReject}))
	}
	return errs
}

// queuing checks that hands of queues can be dealt from the bits of a hash.
func queuing(q *flowcontrolv1.QueuingConfiguration, at *field.Path) (errs field.ErrorList) {
	const most = 10_000_000
	invalid := func(name string, value int32, detail string) {
		errs = append(errs, field.Invalid(at.Child(name), value, detail))
	}
	if q.QueueLengthLimit <= 0 {
		invalid("queueLengthLimit", q.QueueLengthLimit, "must be positive")
	}
	switch {
	case q.Queues <= 0:
		invalid("queues", q.Queues, "must be positive")
	case q.Queues > most:
		invalid("queues", q.Queues, fmt.Sprintf("must not be greater than %d", most))
	}
	switch {
	case q.HandSize <= 0:
		invalid("handSize", q.HandSize, "must be positive")
	case q.HandSize > q.Queues:
		invalid("handSize", q.HandSize, fmt.Sprintf("should not be greater than queues (%d)", q.Queues))
	default:
		if bits := shufflesharding.RequiredEntropyBits(int(q.Queues), int(q.HandSize)); bits > shufflesharding.MaxHashBits {
			invalid("handSize", q.HandSize, fmt.Sprintf("required entropy bits of deckSize %d and handSize %d should not be greater than %d", q.Queues, q.HandSize, shufflesharding.MaxHashBits))
		}
	}
	return errs
}
