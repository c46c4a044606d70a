package cronjob

import (
	"context"
	"fmt"
	"maps"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	batchlisters "k8s.io/client-go/listers/batch/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/periplus/periplus/controllers"
	"github.com/periplus/periplus/journey"
)

var kind = batchv1.SchemeGroupVersion.WithKind("CronJob")

// lateness is added to the timers, so that they never fire a moment too early.
const lateness = 100 * time.Millisecond

// Controller declares the CronJob controller.
func Controller() controllers.Controller {
	both := []schema.GroupVersionResource{batchv1.SchemeGroupVersion.WithResource("cronjobs"), batchv1.SchemeGroupVersion.WithResource("jobs")}
	return controllers.Controller{Name: "cronjob-controller", Reads: both, Writes: both, New: build}
}

type reconciler struct {
	*controllers.Setup
	lister batchlisters.CronJobLister
	jobs   cache.Indexer
}

func build(s *controllers.Setup) (controllers.Reconciler, error) {
	batch := s.Informers.Batch().V1()
	if err := controllers.IndexByController(batch.Jobs().Informer()); err != nil {
		return nil, err
	}
	r := &reconciler{Setup: s, lister: batch.CronJobs().Lister(), jobs: batch.Jobs().Informer().GetIndexer()}
	s.Watch(batch.CronJobs().Informer(), controllers.Self(s.Queue))
	s.Watch(batch.Jobs().Informer(), controllers.On(func(old, now *batchv1.Job) {
		for _, job := range []*batchv1.Job{old, now} {
			if job == nil {
				continue
			}
			if key, ok := controllers.OwnerKey(job, kind.Group, kind.Kind); ok {
				s.Queue.Add(key)
			}
		}
	}))
	return r, nil
}

// Reconcile tidies up after finished Jobs, starts the Job that is due, and returns
// the time until the next.
func (r *reconciler) Reconcile(ctx context.Context, key controllers.Key) (time.Duration, error) {
	cached, err := r.lister.CronJobs(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	if err != nil || cached.DeletionTimestamp != nil {
		return 0, err
	}
	cj := cached.DeepCopy()
	jobs := controllers.Children[*batchv1.Job](r.jobs, cj.UID)
	r.tidy(ctx, cj, jobs)
	wait, err := r.schedule(ctx, cj)
	if !equality.Semantic.DeepEqual(&cached.Status, &cj.Status) {
		if _, updateErr := r.Client.BatchV1().CronJobs(key.Namespace).UpdateStatus(ctx, cj, metav1.UpdateOptions{}); updateErr != nil && !apierrors.IsNotFound(updateErr) {
			return 0, updateErr
		}
	}
	return wait, err
}

// schedule starts a Job if one is due.
func (r *reconciler) schedule(ctx context.Context, cj *batchv1.CronJob) (time.Duration, error) {
	if cj.Spec.Suspend != nil && *cj.Spec.Suspend {
		return 0, nil
	}
	now := r.Clock.Now()
	if cj.Spec.TimeZone != nil {
		zone, err := time.LoadLocation(*cj.Spec.TimeZone)
		if err != nil {
			r.Recorder.Eventf(cj, corev1.EventTypeWarning, "UnknownTimeZone", "invalid timeZone: %q: %s", *cj.Spec.TimeZone, err)
			return 0, nil
		}
		now = now.In(zone)
	}
	schedule, err := ParseSchedule(cj.Spec.Schedule)
	if err != nil {
		r.Recorder.Eventf(cj, corev1.EventTypeWarning, "UnparseableSchedule", "unparseable schedule: %q : %s", cj.Spec.Schedule, err)
		return 0, nil // it takes an update to change this
	}
	due, missed := lastDue(cj, schedule, now)
	if missed > 100 {
		r.Recorder.Eventf(cj, corev1.EventTypeWarning, "TooManyMissedTimes", "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew")
	}
	next := func() time.Duration {
		at := schedule.Next(now)
		if at.IsZero() {
			return 0
		}
		return at.Sub(now) + lateness
	}
	if due.IsZero() {
		return next(), nil
	}
	if s := cj.Spec.StartingDeadlineSeconds; s != nil && due.Add(time.Duration(*s)*time.Second).Before(now) {
		r.Recorder.Eventf(cj, corev1.EventTypeWarning, "MissSchedule", "Missed scheduled time to start a job: %s", due.UTC().Format(time.RFC1123Z))
		return next(), nil
	}
	name := fmt.Sprintf("%s-%d", cj.Name, due.Unix()/60)
	if hasActive(cj, name) || cj.Status.LastScheduleTime != nil && cj.Status.LastScheduleTime.Time.Equal(due) {
		return next(), nil
	}
	if len(cj.Status.Active) > 0 {
		switch cj.Spec.ConcurrencyPolicy {
		case batchv1.ForbidConcurrent:
			r.Recorder.Event(cj, corev1.EventTypeNormal, "JobAlreadyActive", "Not starting job because prior execution is running and concurrency policy is Forbid")
			return next(), nil
		case batchv1.ReplaceConcurrent:
			for _, ref := range cj.Status.Active {
				if err := r.remove(ctx, cj, ref.Name); err != nil {
					return 0, err
				}
			}
			cj.Status.Active = nil
		}
	}
	if err := r.start(ctx, cj, name, due); err != nil {
		return 0, err
	}
	return next(), nil
}

// start creates the Job of one scheduled time. Its name follows from the time, so
// that it is created once, however often this runs.
func (r *reconciler) start(ctx context.Context, cj *batchv1.CronJob, name string, due time.Time) error {
	begin := time.Now()
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: cj.Namespace,
			Labels: maps.Clone(cj.Spec.JobTemplate.Labels), Annotations: maps.Clone(cj.Spec.JobTemplate.Annotations),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(cj, kind)},
		},
		Spec: *cj.Spec.JobTemplate.Spec.DeepCopy(),
	}
	if job.Annotations == nil {
		job.Annotations = map[string]string{}
	}
	job.Annotations[batchv1.CronJobScheduledTimestampAnnotation] = due.Format(time.RFC3339)
	journey.Inherit(job, cj)
	created, err := r.Client.BatchV1().Jobs(cj.Namespace).Create(ctx, job, metav1.CreateOptions{})
	switch {
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return nil
	case apierrors.IsAlreadyExists(err):
		live, getErr := r.Client.BatchV1().Jobs(cj.Namespace).Get(ctx, name, metav1.GetOptions{})
		if getErr != nil {
			return getErr
		}
		if ref := metav1.GetControllerOfNoCopy(live); ref == nil || ref.UID != cj.UID {
			return fmt.Errorf("CronJob %s/%s: job object already exists: %w", cj.Namespace, cj.Name, err)
		}
		cj.Status.LastScheduleTime = &metav1.Time{Time: due}
		return nil // a lagging status: the cache will show the Job
	case err != nil:
		r.Recorder.Eventf(cj, corev1.EventTypeWarning, "FailedCreate", "Error creating job: %v", err)
		return err
	}
	r.Recorder.Eventf(cj, corev1.EventTypeNormal, "SuccessfulCreate", "Created job %v", created.Name)
	r.Span("job "+created.Name+" created", kind.Kind, cj, begin)
	cj.Status.Active = append(cj.Status.Active, reference(created))
	cj.Status.LastScheduleTime = &metav1.Time{Time: due}
	return nil
}

func reference(job *batchv1.Job) corev1.ObjectReference {
	return corev1.ObjectReference{
		APIVersion: batchv1.SchemeGroupVersion.String(), Kind: "Job",
		Namespace: job.Namespace, Name: job.Name, UID: job.UID, ResourceVersion: job.ResourceVersion,
	}
}

func hasActive(cj *batchv1.CronJob, name string) bool {
	for _, ref := range cj.Status.Active {
		if ref.Name == name {
			return true
		}
	}
	return false
}

// lastDue returns the latest scheduled time that has come since the last one
// handled (or the creation), zero if none has, and how many there were.
func lastDue(cj *batchv1.CronJob, s *Schedule, now time.Time) (time.Time, int) {
	from := cj.CreationTimestamp.Time
	if t := cj.Status.LastScheduleTime; t != nil {
		from = t.Time
	}
	if d := cj.Spec.StartingDeadlineSeconds; d != nil {
		if earliest := now.Add(-time.Duration(*d) * time.Second); earliest.After(from) {
			from = earliest
		}
	}
	from = from.In(now.Location())
	// After a long pause, counting every minute since would take long: begin near
	// the end, at a distance that surely holds one scheduled time.
	first := s.Next(from)
	if first.IsZero() || first.After(now) {
		return time.Time{}, 0
	}
	second := s.Next(first)
	missed := 1
	if gap := second.Sub(first); !second.IsZero() && gap > 0 && now.Sub(first) > 200*gap {
		missed = 200
		for distance := 2 * gap; ; distance *= 2 {
			start := now.Add(-distance)
			if !start.After(first) {
				break
			}
			if t := s.Next(start); !t.IsZero() && !t.After(now) {
				first = t
				break
			}
		}
	}
	last := first
	for t := s.Next(last); !t.IsZero() && !t.After(now); t = s.Next(t) {
		last = t
		missed++
	}
	return last, missed
}
