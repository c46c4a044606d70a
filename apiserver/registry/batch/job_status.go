package batch

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/validation"
)

// validateJobStatus checks an update of jobs/status. Rules between two parts of
// the status hold when one of them changed, so that statuses of older servers
// can still be updated.
func validateJobStatus(job, old *batchv1.Job) field.ErrorList {
	s, o, at := &job.Status, &old.Status, field.NewPath("status")
	var errs field.ErrorList
	invalid := func(name string, value any, detail string) {
		errs = append(errs, field.Invalid(at.Child(name), value, detail))
	}
	zero := int32(0)
	orZero := func(p *int32) *int32 {
		if p == nil {
			return &zero
		}
		return p
	}
	for _, n := range []struct {
		name  string
		value int32
	}{{"active", s.Active}, {"succeeded", s.Succeeded}, {"failed", s.Failed}, {"ready", *orZero(s.Ready)}, {"terminating", *orZero(s.Terminating)}} {
		errs = append(errs, validation.Nonnegative(int64(n.value), at.Child(n.name))...)
	}
	errs = append(errs, uncounted(s.UncountedTerminatedPods, at.Child("uncountedTerminatedPods"))...)

	is := func(t batchv1.JobConditionType) bool { return condition(job, t) }
	was := func(t batchv1.JobConditionType) bool { return condition(old, t) }
	turned := func(t batchv1.JobConditionType) bool { return is(t) != was(t) }
	complete, failed, target, met := is(batchv1.JobComplete), is(batchv1.JobFailed), is(batchv1.JobFailureTarget), is(batchv1.JobSuccessCriteriaMet)
	completeTurned, failedTurned := turned(batchv1.JobComplete), turned(batchv1.JobFailed)
	finished := complete || failed
	finishedTurned := finished != (was(batchv1.JobComplete) || was(batchv1.JobFailed))
	conditions := func(detail string) { invalid("conditions", field.OmitValueType{}, detail) }

	activeChanged := s.Active != o.Active
	startChanged := !validation.Equal(s.StartTime, o.StartTime)
	completionChanged := !validation.Equal(s.CompletionTime, o.CompletionTime)
	completedIndexes, failedIndexes := s.CompletedIndexes != o.CompletedIndexes, !validation.Equal(s.FailedIndexes, o.FailedIndexes)

	if (completeTurned || failedTurned) && complete && failed {
		conditions("cannot set Complete=True and Failed=true conditions")
	}
	if (completeTurned || turned(batchv1.JobFailureTarget)) && complete && target {
		conditions("cannot set Complete=True and FailureTarget=true conditions")
	}
	if completeTurned || completionChanged {
		if s.CompletionTime != nil && !complete {
			invalid("completionTime", s.CompletionTime, "cannot set completionTime when there is no Complete=True condition")
		}
		if s.CompletionTime == nil && complete {
			errs = append(errs, field.Required(at.Child("completionTime"), "completionTime is required for Complete jobs"))
		}
	}
	if (startChanged || completionChanged) && s.StartTime != nil && s.CompletionTime != nil && s.CompletionTime.Before(s.StartTime) {
		invalid("completionTime", s.CompletionTime, "must be equal to or after `startTime`")
	}
	if (failedTurned || failedIndexes) && failed && !target {
		conditions("cannot set Failed=True condition without the FailureTarget=true condition")
	}
	if (completeTurned || turned(batchv1.JobSuccessCriteriaMet)) && complete && !met {
		conditions("cannot set Complete=True condition without the SuccessCriteriaMet=true condition")
	}
	if (finishedTurned || activeChanged) && finished && s.Active > 0 {
		invalid("active", s.Active, "active>0 is invalid for finished job")
	}
	suspended := job.Spec.Suspend != nil && *job.Spec.Suspend
	if (finishedTurned || startChanged) && finished && s.StartTime == nil && !(suspended && job.Spec.Completions != nil && *job.Spec.Completions == 0) {
		errs = append(errs, field.Required(at.Child("startTime"), "startTime is required for finished job"))
	}
	if u := s.UncountedTerminatedPods; finished && u != nil && len(u.Failed)+len(u.Succeeded) > 0 &&
		(finishedTurned || !validation.Equal(u, o.UncountedTerminatedPods)) {
		invalid("uncountedTerminatedPods", u, "must be empty for finished job")
	}
	errs = append(errs, statusIndexes(job, completedIndexes, failedIndexes, at)...)
	if (finishedTurned || !validation.Equal(s.Terminating, o.Terminating)) && finished && *orZero(s.Terminating) > 0 {
		invalid("terminating", s.Terminating, "terminating>0 is invalid for finished job")
	}
	if (activeChanged || !validation.Equal(s.Ready, o.Ready)) && s.Ready != nil && *s.Ready > s.Active {
		invalid("ready", *s.Ready, "cannot set more ready pods than active")
	}
	if met && failed {
		conditions("cannot set SuccessCriteriaMet=True and Failed=true conditions")
	}
	if met && target {
		conditions("cannot set SuccessCriteriaMet=True and FailureTarget=true conditions")
	}
	if job.Spec.SuccessPolicy != nil && !met && complete {
		conditions("cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True")
	}

	// What may not go back.
	for _, t := range []batchv1.JobConditionType{batchv1.JobFailed, batchv1.JobComplete, batchv1.JobFailureTarget} {
		if was(t) && !is(t) {
			conditions(fmt.Sprintf("cannot disable the terminal %s=True condition", t))
		}
	}
	if s.Failed < o.Failed {
		invalid("failed", s.Failed, "cannot decrease the failed counter")
	}
	elastic := indexed(&job.Spec) && validation.Equal(job.Spec.Completions, job.Spec.Parallelism)
	if s.Succeeded < o.Succeeded && !elastic {
		invalid("succeeded", s.Succeeded, "cannot decrease the succeeded counter")
	}
	if s.CompletionTime != nil && o.CompletionTime != nil && completionChanged {
		invalid("completionTime", s.CompletionTime, "field is immutable")
	}
	resuming := was(batchv1.JobSuspended) && !is(batchv1.JobSuspended)
	if startChanged && o.StartTime != nil && !suspended && !resuming {
		invalid("startTime", s.StartTime, "field is immutable for unsuspended job once set")
	}
	if was(batchv1.JobSuccessCriteriaMet) && !met {
		conditions("cannot disable the SuccessCriteriaMet=True condition")
	}
	if was(batchv1.JobComplete) && !was(batchv1.JobSuccessCriteriaMet) && met {
		conditions("cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions")
	}
	return errs
}

func uncounted(u *batchv1.UncountedTerminatedPods, at *field.Path) field.ErrorList {
	if u == nil {
		return nil
	}
	var errs field.ErrorList
	seen := map[types.UID]bool{}
	for _, l := range []struct {
		name string
		uids []types.UID
	}{{"succeeded", u.Succeeded}, {"failed", u.Failed}} {
		for i, uid := range l.uids {
			switch p := at.Child(l.name).Index(i); {
			case uid == "":
				errs = append(errs, field.Invalid(p, uid, "must not be empty"))
			case seen[uid]:
				errs = append(errs, field.Duplicate(p, uid))
			}
			seen[uid] = true
		}
	}
	return errs
}

// statusIndexes checks the lists of completed and failed indexes.
func statusIndexes(job *batchv1.Job, completedChanged, failedChanged bool, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	s, spec := &job.Status, &job.Spec
	var completed, failed indexes
	var err error
	if completedChanged {
		if s.CompletedIndexes != "" && !indexed(spec) {
			errs = append(errs, field.Invalid(at.Child("completedIndexes"), s.CompletedIndexes, "cannot set non-empty completedIndexes when non-indexed completion mode"))
		}
		if spec.Completions != nil {
			if _, err = parseIndexes(s.CompletedIndexes, *spec.Completions); err != nil {
				errs = append(errs, field.Invalid(at.Child("completedIndexes"), s.CompletedIndexes, fmt.Sprintf("error parsing completedIndexes: %s", err)))
			}
		}
	}
	if failedChanged && s.FailedIndexes != nil {
		if spec.BackoffLimitPerIndex == nil {
			errs = append(errs, field.Invalid(at.Child("failedIndexes"), *s.FailedIndexes, "cannot set non-null failedIndexes when backoffLimitPerIndex is null"))
		} else if spec.Completions != nil {
			if _, err = parseIndexes(*s.FailedIndexes, *spec.Completions); err != nil {
				errs = append(errs, field.Invalid(at.Child("failedIndexes"), s.FailedIndexes, fmt.Sprintf("error parsing failedIndexes: %s", err)))
			}
		}
	}
	if (completedChanged || failedChanged) && s.FailedIndexes != nil && spec.Completions != nil {
		completed, err = parseIndexes(s.CompletedIndexes, *spec.Completions)
		if err == nil {
			failed, err = parseIndexes(*s.FailedIndexes, *spec.Completions)
		}
		if index, both := completed.overlap(failed); err == nil && both {
			errs = append(errs, field.Invalid(at.Child("failedIndexes"), *s.FailedIndexes, fmt.Sprintf("failedIndexes and completedIndexes overlap at index: %d", index)))
		}
	}
	return errs
}
