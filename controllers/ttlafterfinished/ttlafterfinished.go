package ttlafterfinished

import (
	"context"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	batchlisters "k8s.io/client-go/listers/batch/v1"

	"github.com/periplus/periplus/controllers"
)

// Controller declares the clean-up of finished Jobs.
func Controller() controllers.Controller {
	jobs := []schema.GroupVersionResource{batchv1.SchemeGroupVersion.WithResource("jobs")}
	return controllers.Controller{Name: "ttl-after-finished-controller", Reads: jobs, Writes: jobs, New: build}
}

type reconciler struct {
	*controllers.Setup
	jobs batchlisters.JobLister
}

func build(s *controllers.Setup) (controllers.Reconciler, error) {
	informer := s.Informers.Batch().V1().Jobs()
	s.Watch(informer.Informer(), controllers.On(func(_, now *batchv1.Job) {
		if now != nil && now.DeletionTimestamp == nil {
			if _, ok := expiry(now); ok {
				s.Queue.Add(controllers.KeyOf(now))
			}
		}
	}))
	return &reconciler{Setup: s, jobs: informer.Lister()}, nil
}

// expiry returns when a finished Job with a time to live is to be deleted.
func expiry(job *batchv1.Job) (at time.Time, ok bool) {
	if job.Spec.TTLSecondsAfterFinished == nil {
		return time.Time{}, false
	}
	for _, c := range job.Status.Conditions {
		if (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue {
			return c.LastTransitionTime.Add(time.Duration(*job.Spec.TTLSecondsAfterFinished) * time.Second), true
		}
	}
	return time.Time{}, false
}

// Reconcile deletes the Job if its time is over, with its pods before it.
func (r *reconciler) Reconcile(ctx context.Context, key controllers.Key) (time.Duration, error) {
	job, err := r.jobs.Jobs(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	if err != nil || job.DeletionTimestamp != nil {
		return 0, err
	}
	at, ok := expiry(job)
	if !ok {
		return 0, nil
	}
	if left := at.Sub(r.Clock.Now()); left > 0 {
		return left, nil
	}
	// The time to live may have been changed since the cache saw the Job: the
	// server deletes only the version that was judged.
	foreground := metav1.DeletePropagationForeground
	options := metav1.DeleteOptions{PropagationPolicy: &foreground, Preconditions: &metav1.Preconditions{UID: &job.UID}}
	if job.ResourceVersion != "" {
		options.Preconditions.ResourceVersion = &job.ResourceVersion
	}
	err = r.Client.BatchV1().Jobs(key.Namespace).Delete(ctx, key.Name, options)
	if apierrors.IsNotFound(err) {
		err = nil
	}
	return 0, err
}
