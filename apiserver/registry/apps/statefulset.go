package apps

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/defaults"
	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
	"github.com/periplus/periplus/apiserver/validation"
)

var statefulSetHalves = kind.Split(func(obj *appsv1.StatefulSet) (*appsv1.StatefulSetSpec, *appsv1.StatefulSetStatus) {
	return &obj.Spec, &obj.Status
})

func statefulSets() *registry.Resource {
	s := statefulSetHalves.Main()
	s.DefaultFunc = defaultStatefulSet
	s.Name = apivalidation.NameIsDNSLabel
	s.ValidateCreate = func(_ context.Context, set *appsv1.StatefulSet) field.ErrorList {
		return statefulSetSpec(&set.Spec, nil)
	}
	s.ValidateChange = func(_ context.Context, set, old *appsv1.StatefulSet) field.ErrorList {
		at := field.NewPath("spec")
		errs := statefulSetSpec(&set.Spec, &old.Spec)
		errs = append(errs, validation.Immutable(set.Spec.Selector, old.Spec.Selector, at.Child("selector"))...)
		errs = append(errs, validation.Immutable(set.Spec.VolumeClaimTemplates, old.Spec.VolumeClaimTemplates, at.Child("volumeClaimTemplates"))...)
		errs = append(errs, validation.Immutable(set.Spec.ServiceName, old.Spec.ServiceName, at.Child("serviceName"))...)
		return append(errs, validation.Immutable(set.Spec.PodManagementPolicy, old.Spec.PodManagementPolicy, at.Child("podManagementPolicy"))...)
	}
	s.WarningsFunc = statefulSetWarnings
	status := statefulSetHalves.Status()
	status.DefaultFunc = defaultStatefulSet
	status.ValidateChange = func(_ context.Context, set, old *appsv1.StatefulSet) field.ErrorList {
		return statefulSetStatus(&set.Status, &old.Status)
	}
	return &registry.Resource{
		GVR:        version.WithResource("statefulsets"),
		Kind:       "StatefulSet",
		Singular:   "statefulset",
		ShortNames: []string{"sts"},
		Categories: []string{"all"},
		Namespaced: true,
		New:        kind.Make[appsv1.StatefulSet],
		NewList:    kind.Make[appsv1.StatefulSetList],
		Strategy:   s,
		Status:     status,
		Scale: kind.ReplicasOf[*appsv1.StatefulSet](func(obj *appsv1.StatefulSet) (**int32, int32, string, error) {
			selector, err := selectorText(obj.Spec.Selector)
			return &obj.Spec.Replicas, obj.Status.Replicas, selector, err
		}).Scale(),
	}
}

func statefulSetWarnings(_ context.Context, set, old *appsv1.StatefulSet) []string {
	var list []string
	if old == nil || old.Generation != set.Generation {
		list = validation.TemplateWarnings(&set.Spec.Template, templatePath)
	}
	for i := range set.Spec.VolumeClaimTemplates {
		at := field.NewPath("spec", "volumeClaimTemplates").Index(i)
		if old != nil {
			at = at.Child("Spec")
		}
		list = append(list, validation.ClaimSpecWarnings(&set.Spec.VolumeClaimTemplates[i].Spec, at)...)
	}
	if limit := set.Spec.RevisionHistoryLimit; limit != nil && *limit < 0 {
		list = append(list, "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended")
	}
	return list
}

func defaultStatefulSet(set *appsv1.StatefulSet) {
	spec := &set.Spec
	defaults.PodTemplate(&spec.Template)
	for i := range spec.VolumeClaimTemplates {
		claim := &spec.VolumeClaimTemplates[i]
		defaults.ClaimSpec(&claim.Spec)
		defaults.Resources(claim.Status.Capacity)
		defaults.Resources(claim.Status.AllocatedResources)
		if claim.Status.Phase == "" {
			claim.Status.Phase = corev1.ClaimPending
		}
		claim.TypeMeta = metav1.TypeMeta{Kind: "PersistentVolumeClaim", APIVersion: "v1"}
	}
	setInt(&spec.Replicas, 1)
	setInt(&spec.RevisionHistoryLimit, 10)
	if spec.PodManagementPolicy == "" {
		spec.PodManagementPolicy = appsv1.OrderedReadyPodManagement
	}
	if spec.UpdateStrategy.Type == "" {
		spec.UpdateStrategy.Type = appsv1.RollingUpdateStatefulSetStrategyType
		if spec.UpdateStrategy.RollingUpdate == nil {
			spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{}
		}
	}
	if r := spec.UpdateStrategy.RollingUpdate; r != nil {
		setInt(&r.Partition, 0)
		setIntOrString(&r.MaxUnavailable, intstr.FromInt32(1))
	}
	if spec.PersistentVolumeClaimRetentionPolicy == nil {
		spec.PersistentVolumeClaimRetentionPolicy = &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{}
	}
	for _, when := range []*appsv1.PersistentVolumeClaimRetentionPolicyType{
		&spec.PersistentVolumeClaimRetentionPolicy.WhenDeleted, &spec.PersistentVolumeClaimRetentionPolicy.WhenScaled,
	} {
		if *when == "" {
			*when = appsv1.RetainPersistentVolumeClaimRetentionPolicyType
		}
	}
}

func statefulSetSpec(spec, old *appsv1.StatefulSetSpec) field.ErrorList {
	at := field.NewPath("spec")
	var errs field.ErrorList
	switch p := spec.PodManagementPolicy; p {
	case appsv1.OrderedReadyPodManagement, appsv1.ParallelPodManagement:
	case "":
		errs = append(errs, field.Required(at.Child("podManagementPolicy"), ""))
	default:
		errs = append(errs, field.Invalid(at.Child("podManagementPolicy"), p, "must be 'OrderedReady' or 'Parallel'"))
	}
	errs = append(errs, statefulSetStrategy(&spec.UpdateStrategy, at.Child("updateStrategy"))...)
	if p := spec.PersistentVolumeClaimRetentionPolicy; p != nil {
		path := at.Child("persistentVolumeClaimRetentionPolicy")
		errs = append(errs, claimRetention(p.WhenDeleted, path.Child("whenDeleted"))...)
		errs = append(errs, claimRetention(p.WhenScaled, path.Child("whenScaled"))...)
	}
	if old == nil {
		for i := range spec.VolumeClaimTemplates {
			errs = append(errs, validation.ClaimSpec(&spec.VolumeClaimTemplates[i].Spec, nil, at.Child("volumeClaimTemplates").Index(i).Child("spec"))...)
		}
	}
	errs = append(errs, nonnegative(at, number{"replicas", spec.Replicas}, number{"minReadySeconds", &spec.MinReadySeconds})...)
	if spec.Ordinals != nil {
		errs = append(errs, validation.Nonnegative(int64(spec.Ordinals.Start), at.Child("ordinals.start"))...)
	}
	if spec.ServiceName != "" && old == nil {
		errs = append(errs, validation.DNSLabel(spec.ServiceName, at.Child("serviceName"))...)
	}
	template := statefulSetTemplate(spec)
	var before *podTemplate
	if old != nil {
		before = statefulSetTemplate(old)
	}
	errs = append(errs, selectorRules(spec.Selector, "empty selector is invalid for statefulset", at.Child("selector"))...)
	if selector, err := metav1.LabelSelectorAsSelector(spec.Selector); err != nil {
		errs = append(errs, field.Invalid(at.Child("selector"), spec.Selector, ""))
	} else {
		return append(errs, validation.ReplicatedTemplate(template, before, selector, "StatefulSet", at.Child("template"))...)
	}
	return append(errs, validation.RunsForever(template, "StatefulSet", at.Child("template"))...)
}

// statefulSetTemplate returns the template as pods get it: with the volumes of
// the claim templates, and without host name and subdomain, which the
// controller sets.
func statefulSetTemplate(spec *appsv1.StatefulSetSpec) *podTemplate {
	t := spec.Template
	t.Spec.Subdomain, t.Spec.Hostname = "", ""
	if len(spec.VolumeClaimTemplates) == 0 {
		return &t
	}
	var volumes []corev1.Volume
	for i := range spec.VolumeClaimTemplates {
		name := spec.VolumeClaimTemplates[i].Name
		if slices.ContainsFunc(volumes, func(v corev1.Volume) bool { return v.Name == name }) {
			continue
		}
		volumes = append(volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name},
		}})
	}
	claims := len(volumes)
	for _, v := range t.Spec.Volumes {
		if !slices.ContainsFunc(volumes[:claims], func(c corev1.Volume) bool { return c.Name == v.Name }) {
			volumes = append(volumes, v)
		}
	}
	t.Spec.Volumes = volumes
	return &t
}

func claimRetention(p appsv1.PersistentVolumeClaimRetentionPolicyType, at *field.Path) field.ErrorList {
	if p == appsv1.RetainPersistentVolumeClaimRetentionPolicyType || p == appsv1.DeletePersistentVolumeClaimRetentionPolicyType {
		return nil
	}
	return field.ErrorList{field.NotSupported(at, p, []string{string(appsv1.RetainPersistentVolumeClaimRetentionPolicyType), string(appsv1.DeletePersistentVolumeClaimRetentionPolicyType)})}
}

func statefulSetStrategy(s *appsv1.StatefulSetUpdateStrategy, at *field.Path) field.ErrorList {
	rolling := at.Child("rollingUpdate")
	switch s.Type {
	case "":
		return field.ErrorList{field.Required(at, "")}
	case appsv1.OnDeleteStatefulSetStrategyType:
		if s.RollingUpdate != nil {
			return field.ErrorList{field.Invalid(rolling, s.RollingUpdate, "only allowed for updateStrategy 'RollingUpdate'")}
		}
		return nil
	case appsv1.RollingUpdateStatefulSetStrategyType:
	default:
		return field.ErrorList{field.Invalid(at, s, fmt.Sprintf("must be '%s' or '%s'", appsv1.RollingUpdateStatefulSetStrategyType, appsv1.OnDeleteStatefulSetStrategyType))}
	}
	r := s.RollingUpdate
	if r == nil {
		return nil
	}
	errs := nonnegative(rolling, number{"partition", r.Partition})
	if r.MaxUnavailable != nil {
		p := rolling.Child("maxUnavailable")
		errs = append(errs, validation.PositiveIntOrPercent(*r.MaxUnavailable, p)...)
		if validation.IntOrPercent(*r.MaxUnavailable) == 0 {
			errs = append(errs, field.Invalid(p, *r.MaxUnavailable, "cannot be 0"))
		}
		errs = append(errs, validation.NotMoreThan100Percent(*r.MaxUnavailable, p)...)
	}
	return errs
}

func statefulSetStatus(s, old *appsv1.StatefulSetStatus) field.ErrorList {
	at := field.NewPath("status")
	errs := nonnegative(at,
		number{"replicas", &s.Replicas}, number{"readyReplicas", &s.ReadyReplicas}, number{"currentReplicas", &s.CurrentReplicas},
		number{"updatedReplicas", &s.UpdatedReplicas}, number{"availableReplicas", &s.AvailableReplicas}, number{"collisionCount", s.CollisionCount})
	errs = append(errs, validation.Nonnegative(s.ObservedGeneration, at.Child("observedGeneration"))...)
	errs = append(errs, notAbove(at, s.Replicas, "cannot be greater than status.replicas",
		number{"readyReplicas", &s.ReadyReplicas}, number{"currentReplicas", &s.CurrentReplicas},
		number{"updatedReplicas", &s.UpdatedReplicas}, number{"availableReplicas", &s.AvailableReplicas})...)
	errs = append(errs, notAbove(at, s.ReadyReplicas, "cannot be greater than status.readyReplicas", number{"availableReplicas", &s.AvailableReplicas})...)
	return append(errs, notDecremented(s.CollisionCount, old.CollisionCount, at.Child("collisionCount"))...)
}
