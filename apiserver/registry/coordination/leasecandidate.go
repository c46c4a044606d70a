package coordination

import (
	"context"
	"slices"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	coordinationv1beta1 "k8s.io/api/coordination/v1beta1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	semver "k8s.io/apimachinery/pkg/util/version"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
	"github.com/periplus/periplus/apiserver/validation"
)

// leaseCandidates are only served as beta (KEP-4355).
func leaseCandidates() *registry.Resource {
	return &registry.Resource{
		GVR:        coordinationv1beta1.SchemeGroupVersion.WithResource("leasecandidates"),
		Kind:       "LeaseCandidate",
		Singular:   "leasecandidate",
		Namespaced: true,
		New:        kind.Make[coordinationv1beta1.LeaseCandidate],
		NewList:    kind.Make[coordinationv1beta1.LeaseCandidateList],
		Strategy: registry.Funcs[*coordinationv1beta1.LeaseCandidate]{
			ValidateCreate: func(_ context.Context, c *coordinationv1beta1.LeaseCandidate) field.ErrorList {
				return candidate(&c.Spec)
			},
			ValidateChange: func(_ context.Context, c, old *coordinationv1beta1.LeaseCandidate) field.ErrorList {
				return append(candidate(&c.Spec), validation.Immutable(c.Spec.LeaseName, old.Spec.LeaseName, field.NewPath("spec", "leaseName"))...)
			},
			Name:  func(name string, _ bool) []string { return utilvalidation.IsConfigMapKey(name) },
			Fixed: registry.Traits{CreateOnUpdate: true, NoUnconditionalUpdate: true},
		},
		SelectableFields: []string{"spec.leaseName"},
		Fields: func(obj runtime.Object) fields.Set {
			return fields.Set{"spec.leaseName": obj.(*coordinationv1beta1.LeaseCandidate).Spec.LeaseName}
		},
	}
}

var leaseStrategies = []coordinationv1.CoordinatedLeaseStrategy{coordinationv1.OldestEmulationVersion}

func candidate(spec *coordinationv1beta1.LeaseCandidateSpec) field.ErrorList {
	var errs field.ErrorList
	at := field.NewPath("spec")
	if spec.LeaseName == "" {
		errs = append(errs, field.Required(at.Child("leaseName"), ""))
	}
	parse := func(name, value string) *semver.Version {
		v, err := semver.ParseSemantic(value)
		if err != nil {
			errs = append(errs, field.Invalid(at.Child(name), value, "must be a valid semantic version"))
			return semver.MustParseSemantic("0.0.0") // what it is compared as
		}
		return v
	}
	var emulation, binary *semver.Version
	if spec.EmulationVersion != "" {
		emulation = parse("emulationVersion", spec.EmulationVersion)
	}
	if spec.BinaryVersion == "" {
		errs = append(errs, field.Required(at.Child("binaryVersion"), ""))
	} else {
		binary = parse("binaryVersion", spec.BinaryVersion)
	}
	if binary != nil && emulation != nil && binary.LessThan(emulation) {
		errs = append(errs, field.Invalid(at.Child("binaryVersion"), spec.BinaryVersion, "must be greater than or equal to `emulationVersion`"))
	}
	if spec.Strategy == "" {
		return append(errs, field.Required(at.Child("strategy"), ""))
	}
	if spec.Strategy == coordinationv1.OldestEmulationVersion && (emulation == nil || emulation.EqualTo(semver.MustParseSemantic("0.0.0"))) {
		errs = append(errs, field.Required(at.Child("emulationVersion"), "must be specified when `strategy` is 'OldestEmulationVersion'"))
	}
	return append(errs, leaseStrategy(spec.Strategy, at.Child("strategy"))...)
}

// leaseStrategy wants a strategy that Kubernetes knows, or a name with a domain.
func leaseStrategy(s coordinationv1.CoordinatedLeaseStrategy, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if !strings.Contains(string(s), "/") {
		if !slices.Contains(leaseStrategies, s) {
			errs = append(errs, field.NotSupported(at.Child("strategy"), s, leaseStrategies))
		}
		return errs
	}
	for _, m := range utilvalidation.IsQualifiedName(string(s)) {
		errs = append(errs, field.Invalid(at.Child("strategy"), s, m))
	}
	return errs
}
