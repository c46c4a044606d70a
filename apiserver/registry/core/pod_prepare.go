package core

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/periplus/periplus/apiserver/defaults"
	"github.com/periplus/periplus/apiserver/registry/kind"
	"github.com/periplus/periplus/apiserver/request"
	"github.com/periplus/periplus/apiserver/validation"
)

// preparePod sets what a new pod starts with: phase Pending and its QoS class.
func preparePod(ctx context.Context, pod *corev1.Pod) {
	pod.Generation = 1
	pod.Status = corev1.PodStatus{Phase: corev1.PodPending}
	defaults.DropAlphaPodFields(&pod.Spec)
	if len(pod.Spec.SchedulingGates) > 0 {
		pod.Status.Conditions = []corev1.PodCondition{{
			Type:               corev1.PodScheduled,
			Status:             corev1.ConditionFalse,
			LastTransitionTime: metav1.Now(),
			Reason:             corev1.PodReasonSchedulingGated,
			Message:            "Scheduling is blocked due to non-empty scheduling gates",
		}}
	}
	mergeLabelKeys(pod)
	profilesFromAnnotations(ctx, pod)
	defaults.PodLevelResources(pod)
	pod.Status.QOSClass = validation.QOSClass(pod)
}

func preparePodUpdate(_ context.Context, pod, old *corev1.Pod) {
	pod.Status = old.Status
	if pod.Spec.Resources == nil && old.Spec.Resources != nil {
		pod.Spec.Resources = old.Spec.Resources.DeepCopy() // dropped by a client that does not know it
	}
	defaults.DropAlphaPodFields(&pod.Spec)
	setPodGeneration(pod, old)
}

func setPodGeneration(pod, old *corev1.Pod) {
	kind.SetGeneration(pod, old, !validation.Equal(pod.Spec, old.Spec))
}

// mergeLabelKeys turns matchLabelKeys into expressions of the selectors that
// they belong to, with the values of the pod's own labels (KEP-3243, KEP-3633).
func mergeLabelKeys(pod *corev1.Pod) {
	merge := func(s *metav1.LabelSelector, keys []string, operator metav1.LabelSelectorOperator) {
		if s == nil {
			return // matches nothing, whatever the keys
		}
		for _, key := range keys {
			if value, ok := pod.Labels[key]; ok {
				s.MatchExpressions = append(s.MatchExpressions, metav1.LabelSelectorRequirement{Key: key, Operator: operator, Values: []string{value}})
			}
		}
	}
	term := func(t *corev1.PodAffinityTerm) {
		merge(t.LabelSelector, t.MatchLabelKeys, metav1.LabelSelectorOpIn)
		merge(t.LabelSelector, t.MismatchLabelKeys, metav1.LabelSelectorOpNotIn)
	}
	terms := func(soft []corev1.WeightedPodAffinityTerm, hard []corev1.PodAffinityTerm) {
		for i := range soft {
			term(&soft[i].PodAffinityTerm)
		}
		for i := range hard {
			term(&hard[i])
		}
	}
	if a := pod.Spec.Affinity; a != nil {
		if p := a.PodAffinity; p != nil {
			terms(p.PreferredDuringSchedulingIgnoredDuringExecution, p.RequiredDuringSchedulingIgnoredDuringExecution)
		}
		if p := a.PodAntiAffinity; p != nil {
			terms(p.PreferredDuringSchedulingIgnoredDuringExecution, p.RequiredDuringSchedulingIgnoredDuringExecution)
		}
	}
	for i := range pod.Spec.TopologySpreadConstraints {
		t := &pod.Spec.TopologySpreadConstraints[i]
		merge(t.LabelSelector, t.MatchLabelKeys, metav1.LabelSelectorOpIn)
	}
}

// profilesFromAnnotations moves the deprecated AppArmor annotations into the
// fields that replaced them, and warns of those that say something else than the
// fields.
func profilesFromAnnotations(ctx context.Context, pod *corev1.Pod) {
	if len(pod.Annotations) == 0 || pod.Spec.OS != nil && pod.Spec.OS.Name == corev1.Windows {
		return
	}
	var whole *corev1.AppArmorProfile
	if pod.Spec.SecurityContext != nil {
		whole = pod.Spec.SecurityContext.AppArmorProfile
	}
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			c := &containers[i]
			key := corev1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix + c.Name
			value, ok := pod.Annotations[key]
			if !ok || c.SecurityContext != nil && c.SecurityContext.AppArmorProfile != nil {
				continue
			}
			profile := validation.AppArmorFromAnnotation(value)
			if profile != nil && profile.LocalhostProfile != nil && strings.TrimSpace(*profile.LocalhostProfile) != *profile.LocalhostProfile {
				profile = nil
			}
			if profile != nil && validation.Equal(profile, whole) {
				continue
			}
			if profile != nil {
				if c.SecurityContext == nil {
					c.SecurityContext = &corev1.SecurityContext{}
				}
				c.SecurityContext.AppArmorProfile = profile
			}
			request.Warn(ctx, "metadata.annotations["+key+"]: "+validation.AppArmorDeprecated)
		}
	}
}
