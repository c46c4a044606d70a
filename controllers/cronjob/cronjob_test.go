package cronjob_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/periplus/periplus/controllers"
	"github.com/periplus/periplus/controllers/controllerstest"
	"github.com/periplus/periplus/controllers/cronjob"
)

// TestSchedule starts a Job every five minutes, keeps two finished ones, and starts
// none while one runs.
func TestSchedule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		two := int32(2)
		cj := &batchv1.CronJob{
			ObjectMeta: metav1.ObjectMeta{Name: "tick", Namespace: "default", UID: "uid-tick", CreationTimestamp: metav1.Now()},
			Spec:       batchv1.CronJobSpec{Schedule: "*/5 * * * *", ConcurrencyPolicy: batchv1.ForbidConcurrent, SuccessfulJobsHistoryLimit: &two},
		}
		c := controllerstest.Start(t, []controllers.Controller{cronjob.Controller()}, nil, cj)
		jobs := func() []batchv1.Job {
			list, err := c.Client.BatchV1().Jobs("default").List(ctx, metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			return list.Items
		}
		finish := func() {
			for _, j := range jobs() {
				if len(j.Status.Conditions) > 0 {
					continue
				}
				now := metav1.Now()
				j.Status.CompletionTime, j.Status.StartTime = &now, &now
				j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue, LastTransitionTime: now}}
				if _, err := c.Client.BatchV1().Jobs("default").UpdateStatus(ctx, &j, metav1.UpdateOptions{}); err != nil {
					t.Fatal(err)
				}
			}
		}
		pass := func(d time.Duration) { <-time.After(d); synctest.Wait() }

		pass(4 * time.Minute)
		if n := len(jobs()); n != 0 {
			t.Fatalf("%d jobs before the first time", n)
		}
		pass(2 * time.Minute) // 00:06
		started := jobs()
		if len(started) != 1 || started[0].Name != "tick-15778085" || started[0].Annotations["batch.kubernetes.io/cronjob-scheduled-timestamp"] != "2000-01-01T00:05:00Z" {
			t.Fatalf("jobs %v", started)
		}
		pass(5 * time.Minute) // 00:11: the first still runs
		if n := len(jobs()); n != 1 {
			t.Errorf("%d jobs at a time", n)
		}
		for range 4 {
			finish()
			pass(5 * time.Minute)
		}
		finish() // which lets the time start that came while this one ran
		synctest.Wait()
		finished := 0
		for _, j := range jobs() {
			finished += len(j.Status.Conditions)
		}
		if finished != 2 || len(jobs()) != 3 {
			t.Errorf("%d finished jobs are kept, of %d", finished, len(jobs()))
		}
		got, err := c.Client.BatchV1().CronJobs("default").Get(ctx, "tick", metav1.GetOptions{})
		if err != nil || len(got.Status.Active) != 1 || got.Status.LastSuccessfulTime == nil {
			t.Errorf("status %+v, %v", got.Status, err)
		}
	})
}
