package job

import (
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A verdict says that a Job is over, while its pods may still be ending. A nil
// verdict says that it goes on.
type verdict struct {
	success bool
	reason  string
	message string
	delayed bool // active pods could not be deleted yet
}

func condition(job *batchv1.Job, t batchv1.JobConditionType) *batchv1.JobCondition {
	for i := range job.Status.Conditions {
		if c := &job.Status.Conditions[i]; c.Type == t {
			return c
		}
	}
	return nil
}

func isTrue(job *batchv1.Job, t batchv1.JobConditionType) *batchv1.JobCondition {
	if c := condition(job, t); c != nil && c.Status == corev1.ConditionTrue {
		return c
	}
	return nil
}

// finished says whether a Job is over and all its pods have ended.
func finished(job *batchv1.Job) bool {
	return isTrue(job, batchv1.JobComplete) != nil || isTrue(job, batchv1.JobFailed) != nil
}

// verdict decides whether the Job is over. What was decided once stands.
func (p *pass) verdict() *verdict {
	job := p.job
	if c := isTrue(job, batchv1.JobFailureTarget); c != nil {
		return &verdict{reason: c.Reason, message: c.Message}
	}
	if c := isTrue(job, batchv1.JobSuccessCriteriaMet); c != nil {
		return &verdict{success: true, reason: c.Reason, message: c.Message}
	}
	succeeded, failed := p.totals()
	limit := int32(6)
	if job.Spec.BackoffLimit != nil {
		limit = *job.Spec.BackoffLimit
	}
	fail := func(reason, message string) *verdict { return &verdict{reason: reason, message: message} }
	switch {
	case p.policyFails != "":
		return fail(batchv1.JobReasonPodFailurePolicy, p.policyFails)
	case failed > limit, p.restartsExceed(limit):
		return fail(batchv1.JobReasonBackoffLimitExceeded, "Job has reached the specified backoff limit")
	case p.pastDeadline():
		return fail(batchv1.JobReasonDeadlineExceeded, "Job was active longer than specified deadline")
	case p.perIndex != nil && job.Spec.MaxFailedIndexes != nil && p.lost.len() > int(*job.Spec.MaxFailedIndexes):
		return fail(batchv1.JobReasonMaxFailedIndexesExceeded, "Job has exceeded the specified maximal number of failed indexes")
	case p.perIndex != nil && p.lost.len() > 0 && p.done.len()+p.lost.len() >= p.completions():
		return fail(batchv1.JobReasonFailedIndexes, "Job has failed indexes")
	}
	if message := p.successPolicyMet(); message != "" {
		return &verdict{success: true, reason: batchv1.JobReasonSuccessPolicy, message: message}
	}
	if job.Spec.Completions == nil {
		// A work queue: once one pod has succeeded and none runs, all is done.
		if succeeded > 0 && len(p.active) == 0 && (p.terminating == 0 || !p.onlyFailed()) {
			return reached()
		}
		return nil
	}
	if succeeded >= *job.Spec.Completions && (!p.suspended() || *job.Spec.Completions > 0) {
		return reached()
	}
	return nil
}

func reached() *verdict {
	return &verdict{success: true, reason: batchv1.JobReasonCompletionsReached, message: "Reached expected number of succeeded pods"}
}

// restartsExceed says whether containers that are restarted in place have failed
// too often.
func (p *pass) restartsExceed(limit int32) bool {
	if p.job.Spec.Template.Spec.RestartPolicy != corev1.RestartPolicyOnFailure {
		return false
	}
	restarts := int32(0)
	for _, pod := range p.active {
		if pod.Status.Phase != corev1.PodRunning && pod.Status.Phase != corev1.PodPending {
			continue
		}
		for i := range pod.Status.InitContainerStatuses {
			restarts += pod.Status.InitContainerStatuses[i].RestartCount
		}
		for i := range pod.Status.ContainerStatuses {
			restarts += pod.Status.ContainerStatuses[i].RestartCount
		}
	}
	if limit == 0 {
		return restarts > 0
	}
	return restarts >= limit
}

func (p *pass) pastDeadline() bool {
	s := &p.job.Spec
	if s.ActiveDeadlineSeconds == nil || p.job.Status.StartTime == nil || p.suspended() {
		return false
	}
	return !p.now.Before(p.job.Status.StartTime.Add(time.Duration(*s.ActiveDeadlineSeconds) * time.Second))
}

// untilDeadline returns how long the Job may still be active; zero without a limit.
func (p *pass) untilDeadline() time.Duration {
	s := &p.job.Spec
	if s.ActiveDeadlineSeconds == nil || p.job.Status.StartTime == nil || p.suspended() || finished(p.job) {
		return 0
	}
	return max(time.Millisecond, p.job.Status.StartTime.Add(time.Duration(*s.ActiveDeadlineSeconds)*time.Second).Sub(p.now))
}

// announce sets the condition that says how the Job will end.
func (v *verdict) announce(p *pass) {
	if v == nil {
		return
	}
	t := batchv1.JobFailureTarget
	if v.success {
		t = batchv1.JobSuccessCriteriaMet
	}
	p.set(t, corev1.ConditionTrue, v.reason, v.message)
}

// conclude sets the final condition once every pod has ended and is counted, and
// says whether it did.
func (v *verdict) conclude(p *pass) bool {
	s := &p.job.Status
	u := s.UncountedTerminatedPods
	if v == nil || v.delayed || len(p.active) > 0 || p.terminating > 0 || len(u.Succeeded)+len(u.Failed) > 0 || finished(p.job) {
		return false
	}
	if v.success {
		now := metav1.NewTime(p.now)
		s.CompletionTime = &now
		p.set(batchv1.JobComplete, corev1.ConditionTrue, v.reason, v.message)
	} else {
		p.set(batchv1.JobFailed, corev1.ConditionTrue, v.reason, v.message)
	}
	return true
}

// report tells the end in an event and in the journey.
func (v *verdict) report(p *pass) {
	start := p.now
	if p.job.Status.StartTime != nil {
		start = p.job.Status.StartTime.Time
	}
	if v.success {
		p.Recorder.Event(p.cached, corev1.EventTypeNormal, "Completed", "Job completed")
		p.Span("job completed", kind.Kind, p.cached, start)
		return
	}
	p.Recorder.Event(p.cached, corev1.EventTypeWarning, v.reason, v.message)
	p.Span("job failed: "+v.reason, kind.Kind, p.cached, start)
}

// set puts a condition into the status, replacing one of the same type, and says
// whether its state changed.
func (p *pass) set(t batchv1.JobConditionType, status corev1.ConditionStatus, reason, message string) bool {
	now := metav1.NewTime(p.now)
	c := batchv1.JobCondition{Type: t, Status: status, LastProbeTime: now, LastTransitionTime: now, Reason: reason, Message: message}
	conditions := p.job.Status.Conditions
	i := slices.IndexFunc(conditions, func(c batchv1.JobCondition) bool { return c.Type == t })
	switch {
	case i < 0 && status == corev1.ConditionFalse:
		return false
	case i < 0:
		p.job.Status.Conditions = append(conditions, c)
		return true
	case conditions[i].Status == status && conditions[i].Reason == reason && conditions[i].Message == message:
		return false
	}
	changed := conditions[i].Status != status
	conditions[i] = c
	return changed
}

// markSuspended sets the Suspended condition and the start time that goes with it,
// and says whether the Job was suspended or resumed by that.
func (p *pass) markSuspended(v *verdict) bool {
	switch {
	case p.suspended() && v == nil:
		p.job.Status.StartTime = nil
		if p.set(batchv1.JobSuspended, corev1.ConditionTrue, "JobSuspended", "Job suspended") {
			p.notice = [2]string{"Suspended", "Job suspended"}
			return true
		}
	case !p.suspended():
		if p.set(batchv1.JobSuspended, corev1.ConditionFalse, "JobResumed", "Job resumed") {
			now := metav1.NewTime(p.now)
			p.job.Status.StartTime = &now // the deadline counts from the resumption
			p.notice = [2]string{"Resumed", "Job resumed"}
			return true
		}
	}
	return false
}
