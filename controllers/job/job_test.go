package job_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/periplus/periplus/controllers"
	"github.com/periplus/periplus/controllers/controllerstest"
	"github.com/periplus/periplus/controllers/job"
)

type world struct {
	*controllerstest.Cluster
	t *testing.T
}

func start(t *testing.T) world {
	return world{controllerstest.Start(t, []controllers.Controller{job.Controller()}, nil), t}
}

func newJob(change func(*batchv1.JobSpec)) *batchv1.Job {
	labels := map[string]string{"job": "work"}
	one, limit := int32(1), int32(6)
	j := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "work", Namespace: "default"},
		Spec: batchv1.JobSpec{
			Completions: &one, Parallelism: &one, BackoffLimit: &limit,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c", Image: "busybox"}}},
			},
		},
	}
	if change != nil {
		change(&j.Spec)
	}
	return j
}

func ptr[T any](v T) *T { return &v }

func (w world) create(j *batchv1.Job) {
	w.t.Helper()
	if _, err := w.Client.BatchV1().Jobs("default").Create(context.Background(), j, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

func (w world) get() *batchv1.Job {
	j, err := w.Client.BatchV1().Jobs("default").Get(context.Background(), "work", metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return j
}

func (w world) update(change func(*batchv1.Job)) {
	w.t.Helper()
	for {
		j := w.get()
		change(j)
		_, err := w.Client.BatchV1().Jobs("default").Update(context.Background(), j, metav1.UpdateOptions{})
		if err == nil {
			return
		}
	}
}

func holds(j *batchv1.Job, t batchv1.JobConditionType) *batchv1.JobCondition {
	for i := range j.Status.Conditions {
		if c := &j.Status.Conditions[i]; c.Type == t && c.Status == corev1.ConditionTrue {
			return c
		}
	}
	return nil
}

// finish ends every pod that runs, as outcome says by its number in the order in
// which they are found.
func (w world) finish(outcome func(p *corev1.Pod)) {
	for _, p := range w.Pods("default") {
		if p.Status.Phase == "" && p.DeletionTimestamp == nil {
			w.SetPod("default", p.Name, outcome)
		}
	}
}

func succeed(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }
func fail(p *corev1.Pod)    { p.Status.Phase = corev1.PodFailed }

func (w world) running() int {
	n := 0
	for _, p := range w.Pods("default") {
		if p.Status.Phase == "" {
			n++
		}
	}
	return n
}

// TestCompletions runs 20 pods, five at a time, and counts each exactly once.
func TestCompletions(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.create(newJob(func(s *batchv1.JobSpec) { s.Completions, s.Parallelism = ptr(int32(20)), ptr(int32(5)) }))
	w.Until("the job is complete", func() bool {
		if n := w.running(); n > 5 {
			t.Errorf("%d pods run at once", n)
		}
		w.finish(succeed)
		return holds(w.get(), batchv1.JobComplete) != nil
	})
	j := w.get()
	if j.Status.Succeeded != 20 || j.Status.Failed != 0 || j.Status.Active != 0 || j.Status.CompletionTime == nil || j.Status.StartTime == nil {
		t.Errorf("status %+v", j.Status)
	}
	pods := w.Pods("default")
	if len(pods) != 20 {
		t.Errorf("%d pods were made", len(pods))
	}
	for _, p := range pods {
		if len(p.Finalizers) > 0 {
			t.Errorf("pod %s has finalizers %v", p.Name, p.Finalizers)
		}
	}
	if c := holds(j, batchv1.JobComplete); c.Reason != "CompletionsReached" || c.Message != "Reached expected number of succeeded pods" {
		t.Errorf("condition %+v", c)
	}
	w.Until("the end is told", func() bool { return slices.Contains(w.Events(), "Completed: Job completed") })
}

// TestIndexed gives each index one pod with its number.
func TestIndexed(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.create(newJob(func(s *batchv1.JobSpec) {
		s.Completions, s.Parallelism, s.CompletionMode = ptr(int32(5)), ptr(int32(3)), ptr(batchv1.IndexedCompletion)
	}))
	w.Until("the job is complete", func() bool {
		w.finish(succeed)
		return holds(w.get(), batchv1.JobComplete) != nil
	})
	if s := w.get().Status; s.CompletedIndexes != "0-4" || s.Succeeded != 5 {
		t.Errorf("status %+v", s)
	}
	seen := map[string]bool{}
	for _, p := range w.Pods("default") {
		index := p.Annotations["batch.kubernetes.io/job-completion-index"]
		if seen[index] {
			t.Errorf("index %s ran twice", index)
		}
		seen[index] = true
		if !strings.HasPrefix(p.Name, "work-"+index+"-") || p.Spec.Hostname != "work-"+index || p.Spec.Containers[0].Env[0].Name != "JOB_COMPLETION_INDEX" {
			t.Errorf("pod %s with index %s: host %s, env %v", p.Name, index, p.Spec.Hostname, p.Spec.Containers[0].Env)
		}
	}
}

// TestBackoffLimit fails the Job when a pod fails once more than allowed.
func TestBackoffLimit(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.create(newJob(func(s *batchv1.JobSpec) {
		s.BackoffLimit, s.Parallelism, s.Completions = ptr(int32(0)), ptr(int32(2)), ptr(int32(2))
	}))
	w.Until("two pods run", func() bool { return w.running() == 2 })
	w.SetPod("default", w.Pods("default")[0].Name, fail)
	w.Until("the job failed", func() bool { return holds(w.get(), batchv1.JobFailed) != nil })
	j := w.get()
	if c := holds(j, batchv1.JobFailed); c.Reason != "BackoffLimitExceeded" || c.Message != "Job has reached the specified backoff limit" {
		t.Errorf("condition %+v", c)
	}
	if j.Status.Failed == 0 || j.Status.Active != 0 {
		t.Errorf("status %+v", j.Status)
	}
	w.Until("the end is told", func() bool {
		return slices.Contains(w.Events(), "BackoffLimitExceeded: Job has reached the specified backoff limit")
	})
}

// TestFailurePolicy ignores one exit code and fails the Job on another.
func TestFailurePolicy(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.create(newJob(func(s *batchv1.JobSpec) {
		s.Parallelism, s.Completions = ptr(int32(2)), ptr(int32(2))
		s.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{
			{Action: batchv1.PodFailurePolicyActionIgnore, OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}}},
			{Action: batchv1.PodFailurePolicyActionFailJob, OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{Operator: batchv1.PodFailurePolicyOnExitCodesOpIn, Values: []int32{42}}},
		}}
	}))
	w.Until("two pods run", func() bool { return w.running() == 2 })
	w.SetPod("default", w.Pods("default")[0].Name, func(p *corev1.Pod) {
		fail(p)
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}}
	})
	w.Until("the disrupted pod is replaced", func() bool { return len(w.Pods("default")) == 3 })
	if f := w.get().Status.Failed; f != 0 {
		t.Errorf("a disrupted pod counts: failed %d", f)
	}
	var victim string
	w.Until("a pod fails the job", func() bool {
		for _, p := range w.Pods("default") {
			if p.Status.Phase == "" && victim == "" {
				victim = p.Name
				w.SetPod("default", p.Name, func(p *corev1.Pod) {
					fail(p)
					p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 42}}}}
				})
			}
		}
		return holds(w.get(), batchv1.JobFailed) != nil
	})
	want := fmt.Sprintf("Container c for pod default/%s failed with exit code 42 matching FailJob rule at index 1", victim)
	if c := holds(w.get(), batchv1.JobFailed); c.Reason != "PodFailurePolicy" || c.Message != want {
		t.Errorf("condition %+v, want message %q", c, want)
	}
}

// TestSuspend ends the pods without counting them, and starts again.
func TestSuspend(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.create(newJob(func(s *batchv1.JobSpec) { s.Parallelism, s.Completions = ptr(int32(3)), ptr(int32(3)) }))
	w.Until("three pods run", func() bool { return w.get().Status.Active == 3 })
	w.update(func(j *batchv1.Job) { j.Spec.Suspend = ptr(true) })
	w.Until("suspended", func() bool {
		j := w.get()
		return holds(j, batchv1.JobSuspended) != nil && j.Status.Active == 0 && j.Status.StartTime == nil && len(w.Pods("default")) == 0
	})
	if f := w.get().Status.Failed; f != 0 {
		t.Errorf("%d failed", f)
	}
	w.update(func(j *batchv1.Job) { j.Spec.Suspend = ptr(false) })
	w.Until("complete", func() bool {
		w.finish(succeed)
		return holds(w.get(), batchv1.JobComplete) != nil
	})
	w.Until("both are told", func() bool {
		events := w.Events()
		return slices.Contains(events, "Suspended: Job suspended") && slices.Contains(events, "Resumed: Job resumed")
	})
}

// TestCrash counts pods whose result was half counted when the controller died: one
// that had lost its finalizer, one that had not, and one that is gone altogether.
func TestCrash(t *testing.T) {
	t.Parallel()
	j := newJob(func(s *batchv1.JobSpec) { s.Parallelism, s.Completions = ptr(int32(4)), ptr(int32(4)) })
	j.UID = "j"
	j.Status.UncountedTerminatedPods = &batchv1.UncountedTerminatedPods{Succeeded: []types.UID{"a", "b", "gone"}}
	pod := func(name string, finalizers ...string) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Name: name, Namespace: "default", UID: types.UID(name), Labels: map[string]string{"job": "work"}, Finalizers: finalizers,
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(j, batchv1.SchemeGroupVersion.WithKind("Job"))},
			},
			Status: corev1.PodStatus{Phase: corev1.PodSucceeded},
		}
	}
	c := controllerstest.Start(t, []controllers.Controller{job.Controller()}, nil, j, pod("a"), pod("b", batchv1.JobTrackingFinalizer))
	w := world{c, t}
	w.Until("the last pod runs and all is counted", func() bool {
		w.finish(succeed)
		return holds(w.get(), batchv1.JobComplete) != nil
	})
	if s := w.get().Status; s.Succeeded != 4 || len(w.Pods("default")) != 3 {
		t.Errorf("%d pods, status %+v", len(w.Pods("default")), s)
	}
}
