package batch

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
	"github.com/periplus/periplus/apiserver/validation"
)

var cronJobHalves = kind.Split(func(obj *batchv1.CronJob) (*batchv1.CronJobSpec, *batchv1.CronJobStatus) {
	return &obj.Spec, &obj.Status
})

func cronJobs() *registry.Resource {
	s := cronJobHalves.Main()
	s.DefaultFunc = defaultCronJob
	create, update := s.PrepareCreate, s.PrepareUpdate
	s.PrepareCreate = func(ctx context.Context, cj *batchv1.CronJob) {
		dropAlphaFields(&cj.Spec.JobTemplate.Spec)
		create(ctx, cj)
	}
	s.PrepareUpdate = func(ctx context.Context, cj, old *batchv1.CronJob) {
		dropAlphaFields(&cj.Spec.JobTemplate.Spec)
		update(ctx, cj, old)
	}
	s.ValidateCreate = func(_ context.Context, cj *batchv1.CronJob) field.ErrorList {
		errs := cronJobSpec(&cj.Spec, nil)
		if len(cj.Name) > 52 { // jobs are named after it, with a time stamp
			errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), cj.Name, "must be no more than 52 characters"))
		}
		return errs
	}
	s.ValidateChange = func(_ context.Context, cj, old *batchv1.CronJob) field.ErrorList {
		return cronJobSpec(&cj.Spec, &old.Spec)
	}
	s.WarningsFunc = cronJobWarnings
	status := cronJobHalves.Status()
	status.DefaultFunc = defaultCronJob
	return &registry.Resource{
		GVR:        version.WithResource("cronjobs"),
		Kind:       "CronJob",
		Singular:   "cronjob",
		ShortNames: []string{"cj"},
		Categories: []string{"all"},
		Namespaced: true,
		New:        kind.Make[batchv1.CronJob],
		NewList:    kind.Make[batchv1.CronJobList],
		Strategy:   s,
		Status:     status,
	}
}

func cronJobWarnings(_ context.Context, cj, old *batchv1.CronJob) []string {
	at, job := field.NewPath("spec", "jobTemplate", "spec"), &cj.Spec.JobTemplate.Spec
	if old == nil {
		return append(validation.WorkloadWarnings(cj.Name, &job.Template, at.Child("template")), indexWarnings(job, at)...)
	}
	var list []string
	if old.Generation != cj.Generation {
		list = jobSpecWarnings(job, at)
	}
	if strings.Contains(cj.Spec.Schedule, "TZ") {
		list = append(list, "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details")
	}
	return list
}

func defaultCronJob(cj *batchv1.CronJob) {
	spec := &cj.Spec
	defaultJobSpec(&spec.JobTemplate.Spec)
	if spec.ConcurrencyPolicy == "" {
		spec.ConcurrencyPolicy = batchv1.AllowConcurrent
	}
	set(&spec.Suspend, false)
	set(&spec.SuccessfulJobsHistoryLimit, int32(3))
	set(&spec.FailedJobsHistoryLimit, int32(1))
}

func cronJobSpec(spec, old *batchv1.CronJobSpec) field.ErrorList {
	at := field.NewPath("spec")
	var errs field.ErrorList
	if schedule := at.Child("schedule"); spec.Schedule == "" {
		errs = append(errs, field.Required(schedule, ""))
	} else {
		zoned, allowed := strings.Contains(spec.Schedule, "TZ"), old != nil && strings.Contains(old.Schedule, "TZ")
		if err := checkSchedule(spec.Schedule); err != nil {
			errs = append(errs, field.Invalid(schedule, spec.Schedule, err.Error()))
		}
		switch {
		case zoned && !allowed:
			errs = append(errs, field.Invalid(schedule, spec.Schedule, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"))
		case zoned && spec.TimeZone != nil:
			errs = append(errs, field.Invalid(schedule, spec.Schedule, "cannot use both timeZone field and TZ or CRON_TZ in schedule"))
		}
	}
	if d := spec.StartingDeadlineSeconds; d != nil {
		errs = append(errs, validation.Nonnegative(*d, at.Child("startingDeadlineSeconds"))...)
	}
	if old == nil || !validation.Equal(old.TimeZone, spec.TimeZone) {
		errs = append(errs, timeZone(spec.TimeZone, at.Child("timeZone"))...)
	}
	switch p := spec.ConcurrencyPolicy; p {
	case batchv1.AllowConcurrent, batchv1.ForbidConcurrent, batchv1.ReplaceConcurrent:
	case "":
		errs = append(errs, field.Required(at.Child("concurrencyPolicy"), ""))
	default:
		errs = append(errs, field.NotSupported(at.Child("concurrencyPolicy"), p, []batchv1.ConcurrencyPolicy{batchv1.AllowConcurrent, batchv1.ForbidConcurrent, batchv1.ReplaceConcurrent}))
	}
	template, job := at.Child("jobTemplate", "spec"), &spec.JobTemplate.Spec
	var before *batchv1.JobSpec
	if old != nil {
		before = &old.JobTemplate.Spec
	}
	errs = append(errs, jobSpec(job, before, template)...)
	if job.Selector != nil {
		errs = append(errs, field.Invalid(template.Child("selector"), job.Selector, "`selector` will be auto-generated"))
	}
	if job.ManualSelector != nil && *job.ManualSelector {
		errs = append(errs, field.NotSupported(template.Child("manualSelector"), job.ManualSelector, []string{"nil", "false"}))
	}
	for name, limit := range map[string]*int32{"successfulJobsHistoryLimit": spec.SuccessfulJobsHistoryLimit, "failedJobsHistoryLimit": spec.FailedJobsHistoryLimit} {
		if limit != nil {
			errs = append(errs, validation.Nonnegative(int64(*limit), at.Child(name))...)
		}
	}
	return errs
}

var zonePart = regexp.MustCompile(`^[A-Za-z\.\-_0-9+]{1,14}$`)

func timeZone(zone *string, at *field.Path) field.ErrorList {
	if zone == nil {
		return nil
	}
	if *zone == "" {
		return field.ErrorList{field.Invalid(at, zone, "timeZone must be nil or non-empty string")}
	}
	for part := range strings.SplitSeq(*zone, "/") {
		if part == "." || part == ".." || strings.HasPrefix(part, "-") || !zonePart.MatchString(part) {
			return field.ErrorList{field.Invalid(at, zone, fmt.Sprintf("unknown time zone %s", *zone))}
		}
	}
	var errs field.ErrorList
	if strings.EqualFold(*zone, "Local") {
		errs = append(errs, field.Invalid(at, zone, "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"))
	}
	if _, err := time.LoadLocation(*zone); err != nil {
		errs = append(errs, field.Invalid(at, zone, err.Error()))
	}
	return errs
}
