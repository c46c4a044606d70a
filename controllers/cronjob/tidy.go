package cronjob

import (
	"cmp"
	"context"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/periplus/periplus/base"
)

// ended returns how a Job ended; empty while it runs.
func ended(job *batchv1.Job) batchv1.JobConditionType {
	for _, c := range job.Status.Conditions {
		if (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue {
			return c.Type
		}
	}
	return ""
}

// tidy brings the list of active Jobs up to date and deletes the oldest finished
// ones beyond the history limits.
func (r *reconciler) tidy(ctx context.Context, cj *batchv1.CronJob, jobs []*batchv1.Job) {
	var complete, failed []*batchv1.Job
	known := map[string]*batchv1.Job{}
	for _, job := range jobs {
		known[job.Name] = job
		how := ended(job)
		active := hasActive(cj, job.Name)
		switch {
		case how == "" && !active && job.DeletionTimestamp == nil:
			// Ours by its owner, but not listed: a status write was lost.
			cj.Status.Active = append(cj.Status.Active, reference(job))
		case how != "" && active:
			r.Recorder.Eventf(cj, corev1.EventTypeNormal, "SawCompletedJob", "Saw completed job: %s, condition: %v", job.Name, how)
			cj.Status.Active = slices.DeleteFunc(cj.Status.Active, func(ref corev1.ObjectReference) bool { return ref.Name == job.Name })
		}
		switch how {
		case batchv1.JobComplete:
			complete = append(complete, job)
			if t := job.Status.CompletionTime; t != nil && (cj.Status.LastSuccessfulTime == nil || cj.Status.LastSuccessfulTime.Before(t)) {
				cj.Status.LastSuccessfulTime = t
			}
		case batchv1.JobFailed:
			failed = append(failed, job)
		}
	}
	// Listed Jobs that the cache lacks are gone, unless it only lags.
	cj.Status.Active = slices.DeleteFunc(cj.Status.Active, func(ref corev1.ObjectReference) bool {
		if known[ref.Name] != nil {
			return false
		}
		_, err := r.Client.BatchV1().Jobs(cj.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			r.Recorder.Eventf(cj, corev1.EventTypeNormal, "MissingJob", "Active job went missing: %v", ref.Name)
			return true
		}
		return false
	})
	r.keep(ctx, cj, complete, cj.Spec.SuccessfulJobsHistoryLimit)
	r.keep(ctx, cj, failed, cj.Spec.FailedJobsHistoryLimit)
}

// keep deletes the oldest of jobs beyond limit.
func (r *reconciler) keep(ctx context.Context, cj *batchv1.CronJob, jobs []*batchv1.Job, limit *int32) {
	if limit == nil || len(jobs) <= int(*limit) {
		return
	}
	slices.SortFunc(jobs, func(a, b *batchv1.Job) int {
		return cmp.Or(started(a).Compare(started(b)), cmp.Compare(a.Name, b.Name))
	})
	for _, job := range jobs[:len(jobs)-int(*limit)] {
		if job.DeletionTimestamp != nil {
			continue
		}
		if err := r.remove(ctx, cj, job.Name); err != nil {
			r.Log.Warn("deleting old job failed", base.KeyNamespace, job.Namespace, base.KeyName, job.Name, base.KeyError, err)
		}
	}
}

func started(job *batchv1.Job) time.Time {
	if job.Status.StartTime == nil {
		return job.CreationTimestamp.Time
	}
	return job.Status.StartTime.Time
}

func (r *reconciler) remove(ctx context.Context, cj *batchv1.CronJob, name string) error {
	background := metav1.DeletePropagationBackground
	err := r.Client.BatchV1().Jobs(cj.Namespace).Delete(ctx, name, metav1.DeleteOptions{PropagationPolicy: &background})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		r.Recorder.Eventf(cj, corev1.EventTypeWarning, "FailedDelete", "Deleted job: %v", err)
		return err
	}
	r.Recorder.Eventf(cj, corev1.EventTypeNormal, "SuccessfulDelete", "Deleted job %v", name)
	return nil
}
