package printers

import (
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
)

func batchTables() tables {
	selector := columns{wide(text("Selector", doc(batchv1.JobSpec{}, "selector")))}
	return tables{
		"jobs": table(slices.Concat(columns{
			name(),
			text("Status", "Status of the job."),
			text("Completions", doc(batchv1.JobStatus{}, "succeeded")),
			text("Duration", "How long the job took, or has taken so far."),
			age(),
		}, containerColumns(), selector), job),
		"cronjobs": table(slices.Concat(columns{
			name(),
			text("Schedule", doc(batchv1.CronJobSpec{}, "schedule")),
			text("Timezone", doc(batchv1.CronJobSpec{}, "timeZone")),
			yesNo("Suspend", doc(batchv1.CronJobSpec{}, "suspend")),
			number("Active", doc(batchv1.CronJobStatus{}, "active")),
			text("Last Schedule", doc(batchv1.CronJobStatus{}, "lastScheduleTime")),
			age(),
		}, containerColumns(), selector), cronJob),
	}
}

func job(j *batchv1.Job) []any {
	completions := fmt.Sprintf("%d/1", j.Status.Succeeded)
	switch {
	case j.Spec.Completions != nil:
		completions = fmt.Sprintf("%d/%d", j.Status.Succeeded, *j.Spec.Completions)
	case deref(j.Spec.Parallelism, 0) > 1:
		completions += fmt.Sprintf(" of %d", *j.Spec.Parallelism)
	}
	took := ""
	if start := j.Status.StartTime; start != nil {
		end := time.Now()
		if j.Status.CompletionTime != nil {
			end = j.Status.CompletionTime.Time
		}
		took = duration.HumanDuration(end.Sub(start.Time))
	}
	cells := []any{j.Name, jobStatus(j), completions, took, old(j)}
	return append(withContainers(cells, &j.Spec.Template.Spec), metav1.FormatLabelSelector(j.Spec.Selector))
}

func jobStatus(j *batchv1.Job) string {
	is := func(kind batchv1.JobConditionType) bool {
		i := slices.IndexFunc(j.Status.Conditions, func(c batchv1.JobCondition) bool { return c.Type == kind })
		return i >= 0 && j.Status.Conditions[i].Status == corev1.ConditionTrue
	}
	switch {
	case is(batchv1.JobComplete):
		return "Complete"
	case is(batchv1.JobFailed):
		return "Failed"
	case j.DeletionTimestamp != nil:
		return "Terminating"
	case is(batchv1.JobSuspended):
		return "Suspended"
	case is(batchv1.JobFailureTarget):
		return "FailureTarget"
	case is(batchv1.JobSuccessCriteriaMet):
		return "SuccessCriteriaMet"
	}
	return "Running"
}

func cronJob(c *batchv1.CronJob) []any {
	last := none
	if c.Status.LastScheduleTime != nil {
		last = since(*c.Status.LastScheduleTime)
	}
	suspend := unset
	if c.Spec.Suspend != nil {
		suspend = map[bool]string{true: "True", false: "False"}[*c.Spec.Suspend]
	}
	template := &c.Spec.JobTemplate.Spec
	cells := []any{c.Name, c.Spec.Schedule, orNil(c.Spec.TimeZone, none), suspend, int64(len(c.Status.Active)), last, old(c)}
	return append(withContainers(cells, &template.Template.Spec), metav1.FormatLabelSelector(template.Selector))
}
