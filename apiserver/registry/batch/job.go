package batch

import (
	"context"
	"maps"
	"math"
	"slices"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/defaults"
	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
	"github.com/periplus/periplus/apiserver/validation"
)

// The labels by which a Job finds its pods, and their names of before v1.27.
const (
	legacyControllerUID = "controller-uid"
	legacyJobName       = "job-name"
)

var jobHalves = kind.Split(func(obj *batchv1.Job) (*batchv1.JobSpec, *batchv1.JobStatus) {
	return &obj.Spec, &obj.Status
})

func jobs() *registry.Resource {
	s := jobHalves.Main()
	s.DefaultFunc = defaultJob
	s.PrepareCreate = func(_ context.Context, job *batchv1.Job) {
		jobHalves.DropStatus(job)
		job.Generation = 1
		dropAlphaFields(&job.Spec)
		generateSelector(job)
		defaultJobLabels(job) // once more, as upstream reads what it has stored
	}
	s.PrepareUpdate = func(_ context.Context, job, old *batchv1.Job) {
		jobHalves.KeepStatus(job, old)
		dropAlphaFields(&job.Spec)
		jobHalves.BumpGeneration(job, old)
	}
	s.ValidateCreate = func(_ context.Context, job *batchv1.Job) field.ErrorList { return validateJob(job) }
	s.ValidateChange = func(_ context.Context, job, old *batchv1.Job) field.ErrorList { return validateJobUpdate(job, old) }
	s.WarningsFunc = jobWarnings
	status := jobHalves.Status()
	status.DefaultFunc = defaultJob
	status.ValidateChange = func(_ context.Context, job, old *batchv1.Job) field.ErrorList { return validateJobStatus(job, old) }
	return &registry.Resource{
		GVR:        version.WithResource("jobs"),
		Kind:       "Job",
		Singular:   "job",
		Categories: []string{"all"},
		Namespaced: true,
		Dependents: registry.OrphanDependents, // as batch/v1 began
		DeletionWarning: "child pods are preserved by default when jobs are deleted; " +
			"set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning",
		New:              kind.Make[batchv1.Job],
		NewList:          kind.Make[batchv1.JobList],
		Strategy:         s,
		Status:           status,
		SelectableFields: []string{"status.successful"},
		Fields: func(obj runtime.Object) fields.Set {
			return fields.Set{"status.successful": strconv.Itoa(int(obj.(*batchv1.Job).Status.Succeeded))}
		},
	}
}

func defaultJob(job *batchv1.Job) {
	spec := &job.Spec
	defaultJobSpec(spec)
	if spec.Parallelism == nil { // a job with parallelism only is done when any pod succeeds
		set(&spec.Completions, 1)
	}
	set(&spec.Parallelism, 1)
	if spec.BackoffLimit == nil {
		limit := int32(6)
		if spec.BackoffLimitPerIndex != nil {
			limit = math.MaxInt32
		}
		spec.BackoffLimit = &limit
	}
	defaultJobLabels(job)
	set(&spec.CompletionMode, batchv1.NonIndexedCompletion)
	set(&spec.Suspend, false)
	policy := batchv1.TerminatingOrFailed
	if spec.PodFailurePolicy != nil {
		policy = batchv1.Failed
	}
	set(&spec.PodReplacementPolicy, policy)
	set(&spec.ManualSelector, false)
}

// defaultJobLabels gives a job without labels those of its pods.
func defaultJobLabels(job *batchv1.Job) {
	if len(job.Labels) == 0 && job.Spec.Template.Labels != nil {
		job.Labels = maps.Clone(job.Spec.Template.Labels)
	}
}

// set sets *p to value unless it is set.
func set[T any](p **T, value T) {
	if *p == nil {
		*p = &value
	}
}

// defaultJobSpec defaults what jobs and the templates of cron jobs share.
func defaultJobSpec(spec *batchv1.JobSpec) {
	defaults.PodTemplate(&spec.Template)
	if spec.PodFailurePolicy == nil {
		return
	}
	for i := range spec.PodFailurePolicy.Rules {
		patterns := spec.PodFailurePolicy.Rules[i].OnPodConditions
		for j := range patterns {
			if patterns[j].Status == "" {
				patterns[j].Status = corev1.ConditionTrue
			}
		}
	}
}

func dropAlphaFields(spec *batchv1.JobSpec) {
	spec.Scheduling = nil // KEP-5547
}

// generateSelector makes a selector that no other job's pods match, by the
// job's UID, unless the client brings its own.
func generateSelector(job *batchv1.Job) {
	if *job.Spec.ManualSelector {
		return
	}
	template := &job.Spec.Template
	if template.Labels == nil {
		template.Labels = map[string]string{}
	}
	for key, value := range map[string]string{
		legacyJobName: job.Name, batchv1.JobNameLabel: job.Name,
		legacyControllerUID: string(job.UID), batchv1.ControllerUidLabel: string(job.UID),
	} {
		if _, ok := template.Labels[key]; !ok { // a wrong one is refused by validation
			template.Labels[key] = value
		}
	}
	if job.Spec.Selector == nil {
		job.Spec.Selector = &metav1.LabelSelector{}
	}
	if job.Spec.Selector.MatchLabels == nil {
		job.Spec.Selector.MatchLabels = map[string]string{}
	}
	if _, ok := job.Spec.Selector.MatchLabels[batchv1.ControllerUidLabel]; !ok {
		job.Spec.Selector.MatchLabels[batchv1.ControllerUidLabel] = string(job.UID)
	}
}

func jobWarnings(_ context.Context, job, old *batchv1.Job) []string {
	at := field.NewPath("spec")
	switch {
	case old == nil:
		return append(validation.WorkloadWarnings(job.Name, &job.Spec.Template, at.Child("template")), indexWarnings(&job.Spec, at)...)
	case old.Generation != job.Generation:
		return jobSpecWarnings(&job.Spec, at)
	}
	return nil
}

func jobSpecWarnings(spec *batchv1.JobSpec, at *field.Path) []string {
	return append(indexWarnings(spec, at), validation.TemplateWarnings(&spec.Template, at.Child("template"))...)
}

func indexWarnings(spec *batchv1.JobSpec, at *field.Path) []string {
	indexed := spec.CompletionMode != nil && *spec.CompletionMode == batchv1.IndexedCompletion
	if indexed && spec.Completions != nil && *spec.Completions > 100_000 && spec.Parallelism != nil && *spec.Parallelism > 10_000 {
		return []string{at.String() + ": In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, Kubernetes might not be able to track completedIndexes when a big number of indexes fail"}
	}
	return nil
}

func condition(job *batchv1.Job, t batchv1.JobConditionType) bool {
	return slices.ContainsFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool {
		return c.Type == t && c.Status == corev1.ConditionTrue
	})
}
