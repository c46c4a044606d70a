package batch

import (
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/validation"
)

// How large an indexed job may be.
const (
	maxParallelism         = 100_000
	maxFailedIndexes       = 100_000
	manyCompletions        = 100_000 // from here on, the two below apply
	maxParallelismOfMany   = 10_000
	maxFailedIndexesOfMany = 10_000
)

func validateJob(job *batchv1.Job) field.ErrorList {
	errs := generatedSelector(job)
	errs = append(errs, jobSpecWithSelector(&job.Spec, nil)...)
	return append(errs, hostnameOfLastIndex(job)...)
}

// generatedSelector checks that the labels by which pods are found are the
// job's own.
func generatedSelector(job *batchv1.Job) field.ErrorList {
	if job.Spec.ManualSelector != nil && *job.Spec.ManualSelector || job.Spec.Selector == nil {
		return nil
	}
	var errs field.ErrorList
	if job.UID == "" {
		errs = append(errs, field.Required(field.NewPath("metadata", "uid"), ""))
	}
	expected := labels.Set{}
	for _, l := range []struct{ key, value string }{
		{legacyControllerUID, string(job.UID)}, {legacyJobName, job.Name},
		{batchv1.ControllerUidLabel, string(job.UID)}, {batchv1.JobNameLabel, job.Name},
	} {
		expected[l.key] = l.value
		at := field.NewPath("spec", "template", "metadata", "labels").Key(l.key)
		switch value, ok := job.Spec.Template.Labels[l.key]; {
		case !ok:
			errs = append(errs, field.Required(at, fmt.Sprintf("must be '%s'", l.value)))
		case value != l.value:
			errs = append(errs, field.Invalid(at, job.Spec.Template.Labels, fmt.Sprintf("must be '%s'", l.value)))
		}
	}
	if selector, err := metav1.LabelSelectorAsSelector(job.Spec.Selector); err == nil && !selector.Matches(expected) {
		errs = append(errs, field.Invalid(field.NewPath("spec", "selector"), job.Spec.Selector, "`selector` not auto-generated"))
	}
	return errs
}

// hostnameOfLastIndex checks that the pods of an indexed job can have host names.
func hostnameOfLastIndex(job *batchv1.Job) field.ErrorList {
	if !indexed(&job.Spec) || job.Spec.Completions == nil || *job.Spec.Completions <= 0 {
		return nil
	}
	name := fmt.Sprintf("%s-%d", job.Name, *job.Spec.Completions-1)
	if len(utilvalidation.IsDNS1123Label(name)) == 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("metadata", "name"), job.Name, fmt.Sprintf("will not able to create pod with invalid DNS label: %s", name))}
}

func indexed(spec *batchv1.JobSpec) bool {
	return spec.CompletionMode != nil && *spec.CompletionMode == batchv1.IndexedCompletion
}

func jobSpecWithSelector(spec, old *batchv1.JobSpec) field.ErrorList {
	at := field.NewPath("spec")
	errs := jobSpec(spec, old, at)
	if spec.Selector == nil {
		errs = append(errs, field.Required(at.Child("selector"), ""))
	} else {
		errs = append(errs, metav1validation.ValidateLabelSelector(spec.Selector, metav1validation.LabelSelectorValidationOptions{}, at.Child("selector"))...)
	}
	if selector, err := metav1.LabelSelectorAsSelector(spec.Selector); err == nil && !selector.Matches(labels.Set(spec.Template.Labels)) {
		errs = append(errs, field.Invalid(at.Child("template", "metadata", "labels"), spec.Template.Labels, "`selector` does not match template `labels`"))
	}
	return errs
}

// jobSpec checks what jobs and the templates of cron jobs share.
func jobSpec(spec, old *batchv1.JobSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, n := range []struct {
		name  string
		value *int32
	}{
		{"parallelism", spec.Parallelism}, {"completions", spec.Completions}, {"backoffLimit", spec.BackoffLimit},
		{"ttlSecondsAfterFinished", spec.TTLSecondsAfterFinished}, {"backoffLimitPerIndex", spec.BackoffLimitPerIndex},
		{"maxFailedIndexes", spec.MaxFailedIndexes},
	} {
		if n.value != nil {
			errs = append(errs, validation.Nonnegative(int64(*n.value), at.Child(n.name))...)
		}
	}
	if d := spec.ActiveDeadlineSeconds; d != nil {
		errs = append(errs, validation.Nonnegative(*d, at.Child("activeDeadlineSeconds"))...)
	}
	if spec.MaxFailedIndexes != nil && spec.BackoffLimitPerIndex == nil {
		errs = append(errs, field.Required(at.Child("backoffLimitPerIndex"), "when maxFailedIndexes is specified"))
	}
	if by := spec.ManagedBy; by != nil {
		errs = append(errs, utilvalidation.IsDomainPrefixedPath(at.Child("managedBy"), *by)...)
		if len(*by) > 63 {
			errs = append(errs, field.TooLong(at.Child("managedBy"), "", 63))
		}
	}
	errs = append(errs, completionMode(spec, at)...)
	if spec.PodFailurePolicy != nil {
		errs = append(errs, podFailurePolicy(spec, at.Child("podFailurePolicy", "rules"))...)
	}
	if spec.SuccessPolicy != nil {
		if indexed(spec) {
			errs = append(errs, successPolicy(spec, at.Child("successPolicy", "rules"))...)
		} else {
			errs = append(errs, field.Invalid(at.Child("successPolicy"), *spec.SuccessPolicy, "requires indexed completion mode"))
		}
	}
	if p := spec.PodReplacementPolicy; p != nil {
		supported := []batchv1.PodReplacementPolicy{batchv1.Failed, batchv1.TerminatingOrFailed}
		if spec.PodFailurePolicy != nil {
			supported = supported[:1]
		}
		if !slices.Contains(supported, *p) {
			errs = append(errs, field.NotSupported(at.Child("podReplacementPolicy"), *p, supported))
		}
	}
	var before *corev1.PodTemplateSpec
	if old != nil {
		before = &old.Template
	}
	errs = append(errs, validation.PodTemplate(&spec.Template, before, at.Child("template"))...)

	p := at.Child("template", "spec", "restartPolicy")
	switch policy := spec.Template.Spec.RestartPolicy; {
	case policy == corev1.RestartPolicyAlways || policy == "":
		errs = append(errs, field.Required(p, fmt.Sprintf("valid values: %q, %q", corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever)))
	case policy != corev1.RestartPolicyOnFailure && policy != corev1.RestartPolicyNever:
		errs = append(errs, field.NotSupported(p, policy, []corev1.RestartPolicy{corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever}))
	case spec.PodFailurePolicy != nil && policy != corev1.RestartPolicyNever:
		errs = append(errs, field.Invalid(p, policy, fmt.Sprintf("only %q is supported when podFailurePolicy is specified", corev1.RestartPolicyNever)))
	}
	return errs
}

func completionMode(spec *batchv1.JobSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	mode := spec.CompletionMode
	if mode != nil && *mode != batchv1.NonIndexedCompletion && *mode != batchv1.IndexedCompletion {
		errs = append(errs, field.NotSupported(at.Child("completionMode"), mode, []batchv1.CompletionMode{batchv1.NonIndexedCompletion, batchv1.IndexedCompletion}))
	}
	completions, parallelism, failed := spec.Completions, spec.Parallelism, spec.MaxFailedIndexes
	if !indexed(spec) {
		if mode == nil || *mode == batchv1.NonIndexedCompletion {
			for _, n := range []struct {
				name  string
				value *int32
			}{{"backoffLimitPerIndex", spec.BackoffLimitPerIndex}, {"maxFailedIndexes", failed}} {
				if n.value != nil {
					errs = append(errs, field.Invalid(at.Child(n.name), *n.value, "requires indexed completion mode"))
				}
			}
		}
		return errs
	}
	above := func(name string, value *int32, most int32, format string, args ...any) {
		if value != nil && *value > most {
			errs = append(errs, field.Invalid(at.Child(name), *value, fmt.Sprintf(format, args...)))
		}
	}
	if completions == nil {
		errs = append(errs, field.Required(at.Child("completions"), fmt.Sprintf("when completion mode is %s", batchv1.IndexedCompletion)))
	}
	above("parallelism", parallelism, maxParallelism, "must be less than or equal to %d when completion mode is %s", maxParallelism, batchv1.IndexedCompletion)
	if completions != nil {
		above("maxFailedIndexes", failed, *completions, "must be less than or equal to completions")
	}
	above("maxFailedIndexes", failed, maxFailedIndexes, "must be less than or equal to %d", maxFailedIndexes)
	if completions != nil && *completions > manyCompletions && spec.BackoffLimitPerIndex != nil {
		if failed == nil {
			errs = append(errs, field.Required(at.Child("maxFailedIndexes"), fmt.Sprintf("must be specified when completions is above %d", manyCompletions)))
		}
		const format = "must be less than or equal to %d when completions are above %d and used with backoff limit per index"
		above("parallelism", parallelism, maxParallelismOfMany, format, maxParallelismOfMany, manyCompletions)
		above("maxFailedIndexes", failed, maxFailedIndexesOfMany, format, maxFailedIndexesOfMany, manyCompletions)
	}
	return errs
}

// validateJobUpdate checks a change. Most of a job is fixed; the template of a
// suspended job may be given other resources and scheduling directives.
func validateJobUpdate(job, old *batchv1.Job) field.ErrorList {
	spec, before, at := &job.Spec, &old.Spec, field.NewPath("spec")
	errs := jobSpecWithSelector(spec, before)
	errs = append(errs, completionsChange(spec, before, at.Child("completions"))...)
	errs = append(errs, validation.Immutable(spec.Selector, before.Selector, at.Child("selector"))...)
	errs = append(errs, templateChange(spec, old, at)...)
	errs = append(errs, validation.Immutable(spec.CompletionMode, before.CompletionMode, at.Child("completionMode"))...)
	errs = append(errs, validation.Immutable(spec.PodFailurePolicy, before.PodFailurePolicy, at.Child("podFailurePolicy"))...)
	errs = append(errs, validation.Immutable(spec.BackoffLimitPerIndex, before.BackoffLimitPerIndex, at.Child("backoffLimitPerIndex"))...)
	errs = append(errs, validation.Immutable(spec.ManagedBy, before.ManagedBy, at.Child("managedBy"))...)
	errs = append(errs, validation.Immutable(spec.SuccessPolicy, before.SuccessPolicy, at.Child("successPolicy"))...)
	return append(errs, hostnameOfLastIndex(job)...)
}

// completionsChange lets an indexed job grow and shrink with its parallelism (KEP-3715).
func completionsChange(spec, old *batchv1.JobSpec, at *field.Path) field.ErrorList {
	if !indexed(spec) {
		return validation.Immutable(spec.Completions, old.Completions, at)
	}
	if spec.Completions == nil || validation.Equal(spec.Completions, old.Completions) {
		return nil
	}
	if spec.Parallelism != nil && *spec.Completions == *spec.Parallelism {
		return nil
	}
	return field.ErrorList{field.Invalid(at, spec.Completions, fmt.Sprintf("can only be modified in tandem with %s", at.Root().Child("parallelism").String()))}
}

func templateChange(spec *batchv1.JobSpec, old *batchv1.Job, at *field.Path) field.ErrorList {
	if !mutableTemplate(old) {
		return validation.Immutable(spec.Template, old.Spec.Template, at.Child("template"))
	}
	now, before := &spec.Template, old.Spec.Template.DeepCopy()
	switch {
	case now.Spec.Affinity == nil && before.Spec.Affinity != nil:
		before.Spec.Affinity.NodeAffinity = nil
		if *before.Spec.Affinity == (corev1.Affinity{}) {
			before.Spec.Affinity = nil
		}
	case now.Spec.Affinity != nil && before.Spec.Affinity == nil:
		before.Spec.Affinity = &corev1.Affinity{NodeAffinity: now.Spec.Affinity.NodeAffinity}
	case now.Spec.Affinity != nil:
		before.Spec.Affinity.NodeAffinity = now.Spec.Affinity.NodeAffinity
	}
	before.Spec.NodeSelector = now.Spec.NodeSelector
	before.Spec.Tolerations = now.Spec.Tolerations
	before.Spec.SchedulingGates = now.Spec.SchedulingGates
	before.Annotations, before.Labels = now.Annotations, now.Labels
	for _, containers := range [][2][]corev1.Container{
		{before.Spec.Containers, now.Spec.Containers}, {before.Spec.InitContainers, now.Spec.InitContainers},
	} {
		if len(containers[0]) != len(containers[1]) {
			continue
		}
		for i := range containers[0] {
			if containers[0][i].Name == containers[1][i].Name {
				containers[0][i].Resources = containers[1][i].Resources
			}
		}
	}
	return validation.Immutable(now.Spec, before.Spec, at.Child("template.spec"))
}

// mutableTemplate reports that a job is suspended and has no pods left of the
// time before.
func mutableTemplate(job *batchv1.Job) bool {
	suspended := job.Spec.Suspend != nil && *job.Spec.Suspend
	return suspended && job.Status.Active == 0 && (job.Status.StartTime == nil || condition(job, batchv1.JobSuspended))
}
