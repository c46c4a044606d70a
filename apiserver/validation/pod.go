package validation

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/diff"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// changeable names what may change in the spec of a pod, for its error message.
var changeable = strings.Join([]string{
	"`spec.containers[*].image`",
	"`spec.initContainers[*].image`",
	"`spec.activeDeadlineSeconds`",
	"`spec.tolerations` (only additions to existing tolerations)",
	"`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)",
}, ",")

// Pod checks a new pod.
func Pod(pod *corev1.Pod) field.ErrorList {
	c := newPodSpecCheck(&pod.Spec, &pod.ObjectMeta)
	spec := field.NewPath("spec")
	c.metadataAndSpec()
	if len(pod.Spec.EphemeralContainers) > 0 {
		c.forbidden(spec.Child("ephemeralContainers"), "cannot be set on create")
	}
	if pod.Spec.NodeName != "" && len(pod.Spec.SchedulingGates) > 0 {
		c.forbidden(spec.Child("nodeName"), "cannot be set until all schedulingGates have been cleared")
	}
	c.profileAnnotations(pod.Annotations, spec)
	return c.list
}

// metadataAndSpec checks what holds for a pod at any time.
func (c *podSpecCheck) metadataAndSpec() {
	spec := field.NewPath("spec")
	c.podAnnotations(c.meta.Annotations, field.NewPath("metadata", "annotations"))
	c.check(spec)
	if c.spec.ServiceAccountName == "" {
		for i := range c.spec.Volumes {
			if p := c.spec.Volumes[i].Projected; p != nil {
				for j := range p.Sources {
					if p.Sources[j].ServiceAccountToken != nil {
						c.forbidden(spec.Child("volumes").Index(i).Child("projected", "sources").Index(j).Child("serviceAccountToken"),
							"must not be specified when serviceAccountName is not set")
					}
				}
			}
		}
	}
	if grace := c.spec.TerminationGracePeriodSeconds; grace != nil {
		c.nonnegativeChild(spec, "terminationGracePeriodSeconds", *grace)
	}
	for i := range c.spec.Containers {
		c.imageSpace(&c.spec.Containers[i], spec.Child("containers").Index(i))
	}
	for i := range c.spec.InitContainers {
		c.imageSpace(&c.spec.InitContainers[i], spec.Child("initContainers").Index(i))
	}
}

// podAnnotations checks the annotations that mean something to a pod.
func (c *podSpecCheck) podAnnotations(annotations map[string]string, at *field.Path) {
	if value, ok := annotations[corev1.MirrorPodAnnotationKey]; ok && c.spec.NodeName == "" {
		c.invalid(at.Key(corev1.MirrorPodAnnotationKey), value, "must set spec.nodeName if mirror pod annotation is set")
	}
	if value := annotations[corev1.TolerationsAnnotationKey]; value != "" {
		var list []corev1.Toleration
		if err := json.Unmarshal([]byte(value), &list); err != nil {
			c.invalid(at, corev1.TolerationsAnnotationKey, err.Error())
		} else {
			tolerations(&c.errorList, list, at.Child(corev1.TolerationsAnnotationKey))
		}
	}
	if value, ok := annotations[corev1.PodDeletionCost]; ok {
		// "+1" and "01" are refused like words: clients compare the text.
		n, err := strconv.ParseInt(value, 10, 32)
		if err != nil || strconv.FormatInt(n, 10) != value {
			c.invalid(at.Key(corev1.PodDeletionCost), value, "must be a 32bit integer")
		}
	}
	for key, value := range annotations {
		switch container, isAppArmor := strings.CutPrefix(key, corev1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix); {
		case isAppArmor:
			c.appArmorValue(container, value, at.Key(key))
		case key == corev1.SeccompPodAnnotationKey, strings.HasPrefix(key, corev1.SeccompContainerAnnotationKeyPrefix):
			c.seccompValue(value, at.Child(key))
		}
	}
}

func (c *podSpecCheck) seccompValue(value string, at *field.Path) {
	file, local := strings.CutPrefix(value, corev1.SeccompLocalhostProfileNamePrefix)
	switch {
	case value == corev1.SeccompProfileRuntimeDefault, value == corev1.DeprecatedSeccompProfileDockerDefault, value == corev1.SeccompProfileNameUnconfined:
	case local:
		c.add(relativePath(file, at)...)
	default:
		c.invalid(at, value, "must be a valid seccomp profile")
	}
}

func (c *podSpecCheck) appArmorValue(container, value string, at *field.Path) {
	found := false
	c.eachContainer(field.NewPath("spec"), func(ctr *corev1.Container, _ *field.Path) { found = found || ctr.Name == container })
	if !found {
		c.invalid(at, container, "container not found")
	}
	if value != "" && value != corev1.DeprecatedAppArmorBetaProfileRuntimeDefault && value != corev1.DeprecatedAppArmorBetaProfileNameUnconfined &&
		!strings.HasPrefix(value, corev1.DeprecatedAppArmorBetaProfileNamePrefix) {
		c.invalid(at, value, fmt.Sprintf("invalid AppArmor profile name: %q", value))
	}
}

// annotationChanges refuses changes to the annotations that are fixed.
func (c *podSpecCheck) annotationChanges(annotations, old map[string]string) {
	at := field.NewPath("metadata", "annotations")
	for key, before := range old {
		if now, ok := annotations[key]; ok && now == before {
			continue
		}
		if strings.HasPrefix(key, corev1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix) {
			c.forbidden(at.Key(key), "may not remove or update AppArmor annotations")
		}
		if key == corev1.MirrorPodAnnotationKey {
			c.forbidden(at.Key(key), "may not remove or update mirror pod annotation")
		}
	}
	for key := range annotations {
		if _, ok := old[key]; ok {
			continue
		}
		if strings.HasPrefix(key, corev1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix) {
			c.forbidden(at.Key(key), "may not add AppArmor annotations")
		}
		if key == corev1.MirrorPodAnnotationKey {
			c.forbidden(at.Key(key), "may not add mirror pod annotation")
		}
	}
}

// PodUpdate checks a change to a pod. A spec that did not change was valid when
// it was stored and is not checked again.
func PodUpdate(pod, old *corev1.Pod) field.ErrorList {
	c := newPodSpecCheck(&pod.Spec, &pod.ObjectMeta)
	spec := field.NewPath("spec")
	c.annotationChanges(pod.Annotations, old.Annotations)
	if Equal(pod.Spec, old.Spec) && !emptyButSet(&pod.Spec) {
		c.podAnnotations(pod.Annotations, field.NewPath("metadata", "annotations"))
		return c.list
	}
	c.metadataAndSpec()
	if len(pod.Spec.Containers) != len(old.Spec.Containers) {
		c.forbidden(spec.Child("containers"), "pod updates may not add or remove containers")
		return c.list
	}
	if len(pod.Spec.InitContainers) != len(old.Spec.InitContainers) {
		c.forbidden(spec.Child("initContainers"), "pod updates may not add or remove containers")
		return c.list
	}
	if !c.deadlineChange(old.Spec.ActiveDeadlineSeconds, spec.Child("activeDeadlineSeconds")) {
		return c.list
	}
	c.tolerationChanges(old.Spec.Tolerations, spec.Child("tolerations"))
	c.gateChanges(old.Spec.SchedulingGates, spec.Child("schedulingGates"))

	// What may change is set back; the rest must be equal.
	rest := pod.Spec.DeepCopy()
	for i := range rest.Containers {
		rest.Containers[i].Image = old.Spec.Containers[i].Image
	}
	for i := range rest.InitContainers {
		rest.InitContainers[i].Image = old.Spec.InitContainers[i].Image
	}
	rest.ActiveDeadlineSeconds = old.Spec.ActiveDeadlineSeconds
	rest.SchedulingGates = old.Spec.SchedulingGates
	rest.Tolerations = old.Spec.Tolerations
	if before, now := old.Spec.TerminationGracePeriodSeconds, rest.TerminationGracePeriodSeconds; before != nil && *before < 0 && now != nil && *now == 1 {
		rest.TerminationGracePeriodSeconds = before
	}
	if len(old.Spec.SchedulingGates) > 0 {
		c.gatedChanges(rest, &old.Spec, spec)
	}
	if !Equal(rest, &old.Spec) {
		c.forbidden(spec, fmt.Sprintf("pod updates may not change fields other than %s\n%v", changeable, diff.Diff(&old.Spec, rest)))
	}
	return c.list
}

// emptyButSet reports lists that may not be set and are, without anything in them.
func emptyButSet(spec *corev1.PodSpec) bool {
	if spec.Resources != nil && spec.Resources.Claims != nil || spec.SecurityContext != nil && spec.SecurityContext.SupplementalGroups != nil && len(spec.SecurityContext.SupplementalGroups) == 0 {
		return true
	}
	return slices.ContainsFunc(spec.Volumes, func(v corev1.Volume) bool {
		if v.Ephemeral == nil || v.Ephemeral.VolumeClaimTemplate == nil {
			return false
		}
		m := &v.Ephemeral.VolumeClaimTemplate.ObjectMeta
		return m.Finalizers != nil || m.OwnerReferences != nil || m.ManagedFields != nil
	})
}

// deadlineChange reports whether the check should go on.
func (c *podSpecCheck) deadlineChange(old *int64, at *field.Path) bool {
	now := c.spec.ActiveDeadlineSeconds
	switch {
	case now == nil:
		if old != nil {
			c.invalid(at, now, "must not update from a positive integer to nil value")
		}
	case *now < 0 || *now > math.MaxInt32:
		c.invalid(at, *now, validation.InclusiveRangeError(0, math.MaxInt32))
		return false
	case old != nil && *old < *now:
		c.invalid(at, *now, "must be less than or equal to previous value")
		return false
	}
	return true
}

// tolerationChanges lets tolerations be added, and the seconds of existing ones change.
func (c *podSpecCheck) tolerationChanges(old []corev1.Toleration, at *field.Path) {
	for _, before := range old {
		if !slices.ContainsFunc(c.spec.Tolerations, func(now corev1.Toleration) bool {
			now.TolerationSeconds = before.TolerationSeconds
			return now == before
		}) {
			c.forbidden(at, "existing toleration can not be modified except its tolerationSeconds")
			return
		}
	}
}

func (c *podSpecCheck) gateChanges(old []corev1.PodSchedulingGate, at *field.Path) {
	for i, gate := range c.spec.SchedulingGates {
		// Of one that is there twice, the last counts; both are told of as duplicates.
		if !slices.Contains(old, gate) && !slices.Contains(c.spec.SchedulingGates[i+1:], gate) {
			c.forbidden(at.Index(i).Child("name"), fmt.Sprintf("only deletion is allowed, but found new scheduling gate '%s'", gate.Name))
		}
	}
}

// gatedChanges lets the node selector and affinity of a gated pod become
// stricter (KEP-3838), and sets them back in rest.
func (c *podSpecCheck) gatedChanges(rest, old *corev1.PodSpec, at *field.Path) {
	for key, value := range old.NodeSelector {
		if now, ok := rest.NodeSelector[key]; !ok || now != value {
			c.invalid(at.Child("nodeSelector"), rest.NodeSelector, "only additions to spec.nodeSelector are allowed (no mutations or deletions)")
			break
		}
	}
	rest.NodeSelector = old.NodeSelector

	of := func(s *corev1.PodSpec) *corev1.NodeAffinity {
		if s.Affinity == nil {
			return nil
		}
		return s.Affinity.NodeAffinity
	}
	before, now := of(old), of(rest)
	if Equal(before, now) {
		return
	}
	c.affinityAdditions(now, before, at.Child("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"))
	switch {
	case rest.Affinity == nil:
		rest.Affinity = &corev1.Affinity{NodeAffinity: before}
	case old.Affinity == nil && rest.Affinity.PodAffinity == nil && rest.Affinity.PodAntiAffinity == nil:
		rest.Affinity = nil
	default:
		rest.Affinity.NodeAffinity = before
	}
}

func (c *podSpecCheck) affinityAdditions(now, old *corev1.NodeAffinity, at *field.Path) {
	terms := func(a *corev1.NodeAffinity) []corev1.NodeSelectorTerm {
		if a == nil || a.RequiredDuringSchedulingIgnoredDuringExecution == nil {
			return nil
		}
		return a.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	}
	before, after := terms(old), terms(now)
	if len(before) == 0 {
		return
	}
	if len(before) != len(after) {
		c.invalid(at, after, "no additions/deletions to non-empty NodeSelectorTerms list are allowed")
		return
	}
	// extends reports that after begins with before.
	extends := func(after, before []corev1.NodeSelectorRequirement) bool {
		return len(after) >= len(before) && Equal(after[:len(before)], before)
	}
	for i := range before {
		b, a := before[i], after[i]
		empty := len(b.MatchExpressions)+len(b.MatchFields) == 0
		if empty && len(a.MatchExpressions)+len(a.MatchFields) > 0 || !extends(a.MatchExpressions, b.MatchExpressions) || !extends(a.MatchFields, b.MatchFields) {
			c.invalid(at.Index(i), a, "only additions are allowed (no mutations or deletions)")
		}
	}
}

// PodEphemeralContainers checks an update of pods/ephemeralcontainers:
// containers can be added only.
func PodEphemeralContainers(pod, old *corev1.Pod) field.ErrorList {
	if _, static := old.Annotations[corev1.MirrorPodAnnotationKey]; static {
		return field.ErrorList{field.Forbidden(field.NewPath(""), "static pods do not support ephemeral containers")}
	}
	c := newPodSpecCheck(&pod.Spec, &pod.ObjectMeta)
	c.metadataAndSpec()
	c.annotationChanges(pod.Annotations, old.Annotations)
	at := field.NewPath("spec", "ephemeralContainers")
	for _, before := range old.Spec.EphemeralContainers {
		i := slices.IndexFunc(pod.Spec.EphemeralContainers, func(now corev1.EphemeralContainer) bool { return now.Name == before.Name })
		if i < 0 {
			c.forbidden(at, fmt.Sprintf("existing ephemeral containers %q may not be removed\n", before.Name))
		} else if now := pod.Spec.EphemeralContainers[i]; !Equal(before, now) {
			c.forbidden(at, fmt.Sprintf("existing ephemeral containers %q may not be changed\n%v", before.Name, diff.Diff(before, now)))
		}
	}
	return c.list
}
