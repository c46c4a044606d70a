package why

import (
	"cmp"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/periplus/periplus/client/conditions"
	"github.com/periplus/periplus/insight"
)

// rolloutRules: a workload does not get to what it should be.
func rolloutRules() []Rule {
	return []Rule{
		on("rollout-paused", "the Deployment is paused", func(_ *insight.Snapshot, d *appsv1.Deployment) []insight.Finding {
			if !d.Spec.Paused || d.Status.UpdatedReplicas >= replicasOf(d.Spec.Replicas) {
				return nil
			}
			m := insight.Patched("apps", "v1", "deployments", insight.RefOf(d), `{"spec":{"paused":null}}`, "goes on")
			m.Command = insight.Kubectl(d.Namespace, "rollout resume deployment/%s", d.Name)
			return one(&insight.Finding{Part: "paused", What: "the Deployment is paused: changes of its template wait", Evidence: []string{"spec: paused is true"}, Mend: []insight.Mend{m}})
		}),
		on("scaled-to-zero", "zero replicas are asked for", func(_ *insight.Snapshot, d *appsv1.Deployment) []insight.Finding {
			if d.Spec.Replicas == nil || *d.Spec.Replicas != 0 {
				return nil
			}
			return []insight.Finding{zero(insight.RefOf(d), "deployments")}
		}),
		on("statefulset-scaled-to-zero", "zero replicas are asked for", func(_ *insight.Snapshot, d *appsv1.StatefulSet) []insight.Finding {
			if d.Spec.Replicas == nil || *d.Spec.Replicas != 0 {
				return nil
			}
			return []insight.Finding{zero(insight.RefOf(d), "statefulsets")}
		}),
		on("progress-deadline", "the new revision made no progress for too long", func(_ *insight.Snapshot, d *appsv1.Deployment) []insight.Finding {
			for _, c := range d.Status.Conditions {
				if c.Type == appsv1.DeploymentProgressing && c.Status == corev1.ConditionFalse && c.Reason == "ProgressDeadlineExceeded" {
					return one(&insight.Finding{Level: insight.Effect, Part: "rollout", What: fmt.Sprintf("the new revision made no progress for %ds", progress(d)), Evidence: []string{"status: Progressing is False: " + c.Message},
						Mend: []insight.Mend{insight.Do("goes back to the revision before", insight.Kubectl(d.Namespace, "rollout undo deployment/%s", d.Name))}})
				}
			}
			return nil
		}),
		on("rollout-stuck", "new pods do not get ready, so that old ones stay", func(s *insight.Snapshot, d *appsv1.Deployment) []insight.Finding {
			revisions := s.Revisions(d)
			if len(revisions) < 2 || d.Status.UpdatedReplicas == 0 && d.Status.Replicas == 0 || revisions[0].Status.ReadyReplicas >= replicasOf(d.Spec.Replicas) {
				return nil
			}
			old := int32(0)
			for _, r := range revisions[1:] {
				old += r.Status.Replicas
			}
			if old == 0 {
				return nil
			}
			f := &insight.Finding{Level: insight.Effect, Part: "rollout", What: fmt.Sprintf("the rollout waits: %d of %d new pods are ready, %d of the revision before stay", revisions[0].Status.ReadyReplicas, replicasOf(d.Spec.Replicas), old)}
			if u := d.Spec.Strategy.RollingUpdate; u != nil {
				f.Evidence = append(f.Evidence, fmt.Sprintf("spec: maxUnavailable %s, maxSurge %s", u.MaxUnavailable, u.MaxSurge))
				if u.MaxUnavailable != nil && u.MaxUnavailable.String() == "0" {
					f.Why = "With maxUnavailable 0 a new pod must have room beside the old ones before one of those goes."
				}
			}
			return one(f)
		}),
		on("statefulset-waits", "a StatefulSet makes a pod only when the one before is ready", func(s *insight.Snapshot, d *appsv1.StatefulSet) []insight.Finding {
			if d.Spec.PodManagementPolicy == appsv1.ParallelPodManagement || d.Status.Replicas >= replicasOf(d.Spec.Replicas) {
				return nil
			}
			for i := range d.Status.Replicas {
				p, ok := insight.Get[*corev1.Pod](s, d.Namespace, fmt.Sprintf("%s-%d", d.Name, i))
				if ok && !conditions.PodReady(p) {
					return one(&insight.Finding{Level: insight.Effect, Part: "order", What: fmt.Sprintf("%d of %d pods exist: the next is made when %s is ready", d.Status.Replicas, replicasOf(d.Spec.Replicas), p.Name), Evidence: []string{"spec: podManagementPolicy is OrderedReady"}})
				}
			}
			return nil
		}),
		on("statefulset-service-missing", "the Service that gives the pods their names does not exist", func(s *insight.Snapshot, d *appsv1.StatefulSet) []insight.Finding {
			if d.Spec.ServiceName == "" || !insight.Missing[*corev1.Service](s, d.Namespace, d.Spec.ServiceName) {
				return nil
			}
			return one(&insight.Finding{Level: insight.Note, Part: "service", What: fmt.Sprintf("there is no Service %q: the pods have no DNS names", d.Spec.ServiceName), Evidence: []string{"spec: serviceName is " + d.Spec.ServiceName},
				Mend: []insight.Mend{insight.Do("makes it", insight.Kubectl(d.Namespace, "create service clusterip %s --clusterip=None", d.Spec.ServiceName))}})
		}),
		on("daemonset-no-node", "no node is meant to run the DaemonSet", func(s *insight.Snapshot, d *appsv1.DaemonSet) []insight.Finding {
			if d.Status.DesiredNumberScheduled > 0 || d.Status.ObservedGeneration == 0 || len(insight.All[*corev1.Node](s, "")) == 0 {
				return nil
			}
			return one(&insight.Finding{Part: "nodes", What: "no node is meant to run the DaemonSet: its nodeSelector, affinity or tolerations fit none", Evidence: []string{"spec: nodeSelector " + cmp.Or(labelText(d.Spec.Template.Spec.NodeSelector), "is empty"), "status: desiredNumberScheduled is 0"},
				Mend: []insight.Mend{insight.Do("which labels and taints have the nodes?", "peri kubectl get nodes --show-labels"), insight.Do("corrects it", insight.Kubectl(d.Namespace, "edit daemonset %s", d.Name))}})
		}),
		on("selector-shared", "two workloads select the same pods", func(s *insight.Snapshot, d *appsv1.Deployment) []insight.Finding {
			mine, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
			if err != nil {
				return nil
			}
			for _, other := range insight.All[*appsv1.Deployment](s, d.Namespace) {
				theirs, err := metav1.LabelSelectorAsSelector(other.Spec.Selector)
				if other.Name != d.Name && err == nil && mine.Matches(labels.Set(other.Spec.Template.Labels)) && theirs.Matches(labels.Set(d.Spec.Template.Labels)) {
					return one(&insight.Finding{Level: insight.Note, Part: "selector", What: fmt.Sprintf("Deployment %q selects the same pods: Services and budgets cannot tell them apart", other.Name), Evidence: []string{"spec: both select " + formatSelector(d.Spec.Selector)}})
				}
			}
			return nil
		}),
		on("budget-blocks", "a PodDisruptionBudget lets no pod be evicted", func(s *insight.Snapshot, d *appsv1.Deployment) []insight.Finding {
			for _, b := range insight.All[*policyv1.PodDisruptionBudget](s, d.Namespace) {
				sel, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
				if err != nil || sel.Empty() || !sel.Matches(labels.Set(d.Spec.Template.Labels)) || b.Status.DisruptionsAllowed > 0 || b.Status.ExpectedPods == 0 {
					continue
				}
				return one(&insight.Finding{Level: insight.Note, Part: "budget", What: fmt.Sprintf("PodDisruptionBudget %q lets no pod be evicted now: a node that runs one cannot be drained", b.Name),
					Evidence: []string{fmt.Sprintf("status: %d of at least %d healthy pods", b.Status.CurrentHealthy, b.Status.DesiredHealthy)}})
			}
			return nil
		}),
		on("replicas-unavailable", "the workload has fewer ready pods than it should", func(s *insight.Snapshot, d *appsv1.Deployment) []insight.Finding {
			want := replicasOf(d.Spec.Replicas)
			if d.Status.AvailableReplicas >= want || s.Now.Sub(d.CreationTimestamp.Time) < patience && d.Status.Replicas >= want {
				return nil
			}
			if d.Status.ObservedGeneration == 0 && d.Status.Replicas == 0 && len(s.Revisions(d)) == 0 {
				return one(&insight.Finding{Level: insight.Sign, Part: "replicas", What: "the Deployment controller has not looked at it: it does not run", Evidence: []string{"status: observedGeneration is 0"}})
			}
			return one(&insight.Finding{Level: insight.Effect, Part: "replicas", What: fmt.Sprintf("%d of %d replicas are available", d.Status.AvailableReplicas, want)})
		}),
	}
}

func replicasOf(n *int32) int32 {
	if n == nil {
		return 1
	}
	return *n
}

func progress(d *appsv1.Deployment) int32 {
	if d.Spec.ProgressDeadlineSeconds == nil {
		return 600
	}
	return *d.Spec.ProgressDeadlineSeconds
}

func zero(r insight.Ref, resource string) insight.Finding {
	m := insight.Patched("apps", "v1", resource, r, `{"spec":{"replicas":1}}`, "starts one")
	m.Command = insight.Kubectl(r.Namespace, "scale %s --replicas=1", r)
	return insight.Finding{Part: "replicas", What: "no replicas are asked for: it is scaled to zero", Evidence: []string{"spec: replicas is 0"}, Mend: []insight.Mend{m}}
}

func formatSelector(s *metav1.LabelSelector) string { return metav1.FormatLabelSelector(s) }

// jobRules: a Job or CronJob does not do its work.
func jobRules() []Rule {
	failed := func(name, summary, reason, what string, level insight.Level) Rule {
		return on(name, summary, func(s *insight.Snapshot, j *batchv1.Job) []insight.Finding {
			for _, c := range j.Status.Conditions {
				if c.Type == batchv1.JobFailed && c.Status == corev1.ConditionTrue && c.Reason == reason {
					return one(&insight.Finding{Level: level, What: what, Evidence: append([]string{fmt.Sprintf("status: Failed: %s: %s", c.Reason, c.Message), fmt.Sprintf("status: %d failed, %d succeeded", j.Status.Failed, j.Status.Succeeded)}, eventLines(s, j, reason)...),
						Mend: []insight.Mend{insight.Do("runs it again, once its cause is mended", insight.Kubectl(j.Namespace, "replace --force -f JOB.yaml"))}})
				}
			}
			return nil
		})
	}
	return []Rule{
		failed("job-backoff-limit", "the Job's pods failed too often", batchv1.JobReasonBackoffLimitExceeded, "the Job gave up: its pods failed too often", insight.Effect),
		failed("job-deadline", "the Job took longer than activeDeadlineSeconds", batchv1.JobReasonDeadlineExceeded, "the Job took longer than its activeDeadlineSeconds and was ended", insight.Cause),
		failed("job-pod-failure-policy", "the Job's failure policy ended it", batchv1.JobReasonPodFailurePolicy, "a pod failed in a way for which podFailurePolicy ends the Job", insight.Effect),
		failed("job-indexes", "too many indexes of the Job failed", batchv1.JobReasonFailedIndexes, "indexes of the Job failed", insight.Effect),
		on("job-suspended", "the Job is suspended", func(_ *insight.Snapshot, j *batchv1.Job) []insight.Finding {
			if j.Spec.Suspend == nil || !*j.Spec.Suspend {
				return nil
			}
			return one(&insight.Finding{What: "the Job is suspended", Evidence: []string{"spec: suspend is true"}, Mend: []insight.Mend{insight.Patched("batch", "v1", "jobs", insight.RefOf(j), `{"spec":{"suspend":false}}`, "starts it")}})
		}),
		on("cronjob-suspended", "the CronJob is suspended", func(_ *insight.Snapshot, j *batchv1.CronJob) []insight.Finding {
			if j.Spec.Suspend == nil || !*j.Spec.Suspend {
				return nil
			}
			return one(&insight.Finding{What: "the CronJob is suspended: it starts no Jobs", Evidence: []string{"spec: suspend is true"}, Mend: []insight.Mend{insight.Patched("batch", "v1", "cronjobs", insight.RefOf(j), `{"spec":{"suspend":false}}`, "starts Jobs again")}})
		}),
		on("cronjob-missed", "the CronJob missed its times", func(s *insight.Snapshot, j *batchv1.CronJob) []insight.Finding {
			e := s.LastEvent(j, "MissSchedule", "TooManyMissedTimes", "UnparseableSchedule", "InvalidSchedule", "UnknownTimeZone", "JobAlreadyActive")
			if e == nil || j.Status.LastScheduleTime != nil && j.Status.LastScheduleTime.After(e.LastTimestamp.Time) {
				return nil
			}
			what := map[string]string{
				"MissSchedule": "the CronJob missed a start", "TooManyMissedTimes": "the CronJob missed more than 100 starts and gave up counting",
				"UnparseableSchedule": fmt.Sprintf("the schedule %q cannot be read", j.Spec.Schedule), "InvalidSchedule": fmt.Sprintf("the schedule %q cannot be read", j.Spec.Schedule),
				"UnknownTimeZone": "the time zone is not known", "JobAlreadyActive": "the Job before still runs, and concurrencyPolicy Forbid starts none beside it",
			}[e.Reason]
			return one(&insight.Finding{What: what, Evidence: []string{"spec: schedule is " + j.Spec.Schedule, s.EventLine(e)}, Mend: []insight.Mend{insight.Do("corrects it", insight.Kubectl(j.Namespace, "edit cronjob %s", j.Name)), insight.Do("starts one now", insight.Kubectl(j.Namespace, "create job %s-now --from=cronjob/%s", j.Name, j.Name))}})
		}),
	}
}

// scalerRules: a HorizontalPodAutoscaler does not scale.
func scalerRules() []Rule {
	condition := func(h *autoscalingv2.HorizontalPodAutoscaler, t autoscalingv2.HorizontalPodAutoscalerConditionType, status corev1.ConditionStatus, reasons ...string) *autoscalingv2.HorizontalPodAutoscalerCondition {
		for i, c := range h.Status.Conditions {
			if c.Type == t && c.Status == status && slices.Contains(reasons, c.Reason) {
				return &h.Status.Conditions[i]
			}
		}
		return nil
	}
	return []Rule{
		on("scaler-target-missing", "what the autoscaler should scale does not exist", func(s *insight.Snapshot, h *autoscalingv2.HorizontalPodAutoscaler) []insight.Finding {
			t := h.Spec.ScaleTargetRef
			c := condition(h, autoscalingv2.AbleToScale, corev1.ConditionFalse, "FailedGetScale")
			gone := t.Kind == "Deployment" && insight.Missing[*appsv1.Deployment](s, h.Namespace, t.Name)
			if c == nil && !gone {
				return nil
			}
			f := &insight.Finding{Part: "target", What: fmt.Sprintf("there is no %s %q to scale%s", t.Kind, t.Name, like(t.Name, names[*appsv1.Deployment](s, h.Namespace)))}
			if c != nil {
				f.Evidence = []string{"status: AbleToScale is False: " + c.Message}
			}
			f.Mend = []insight.Mend{insight.Do("corrects scaleTargetRef", insight.Kubectl(h.Namespace, "edit hpa %s", h.Name))}
			return one(f)
		}),
		on("scaler-no-requests", "the pods state no request, so that a percentage means nothing", func(s *insight.Snapshot, h *autoscalingv2.HorizontalPodAutoscaler) []insight.Finding {
			d, ok := insight.Get[*appsv1.Deployment](s, h.Namespace, h.Spec.ScaleTargetRef.Name)
			if !ok || h.Spec.ScaleTargetRef.Kind != "Deployment" {
				return nil
			}
			for _, m := range h.Spec.Metrics {
				if m.Resource == nil || m.Resource.Target.Type != autoscalingv2.UtilizationMetricType {
					continue
				}
				for _, c := range d.Spec.Template.Spec.Containers {
					_, request := c.Resources.Requests[m.Resource.Name]
					_, limit := c.Resources.Limits[m.Resource.Name]
					if !request && !limit {
						return one(&insight.Finding{Part: "metrics", What: fmt.Sprintf("the autoscaler wants a percentage of the requested %s, and container %s requests none", m.Resource.Name, c.Name), Evidence: []string{fmt.Sprintf("spec: container %s of %s has no request for %s", c.Name, insight.RefOf(d), m.Resource.Name)},
							Mend: []insight.Mend{insight.Do("requests some", insight.Kubectl(h.Namespace, "set resources deployment/%s -c %s --requests=%s=100m", d.Name, c.Name, m.Resource.Name))}})
					}
				}
			}
			return nil
		}),
		on("scaler-no-metrics", "the autoscaler gets no metrics", func(_ *insight.Snapshot, h *autoscalingv2.HorizontalPodAutoscaler) []insight.Finding {
			c := condition(h, autoscalingv2.ScalingActive, corev1.ConditionFalse, "FailedGetResourceMetric", "FailedGetContainerResourceMetric", "FailedGetPodsMetric", "FailedGetObjectMetric", "FailedGetExternalMetric", "InvalidMetricSourceType")
			if c == nil {
				return nil
			}
			return one(&insight.Finding{Level: insight.Sign, Part: "metrics", What: "the autoscaler gets no metrics and scales nothing", Evidence: []string{fmt.Sprintf("status: ScalingActive is False: %s: %s", c.Reason, c.Message)},
				Mend: []insight.Mend{insight.Do("are there any?", insight.Kubectl(h.Namespace, "top pods"))}})
		}),
		on("scaler-disabled", "the target has zero replicas, which switches the autoscaler off", func(_ *insight.Snapshot, h *autoscalingv2.HorizontalPodAutoscaler) []insight.Finding {
			c := condition(h, autoscalingv2.ScalingActive, corev1.ConditionFalse, "ScalingDisabled")
			if c == nil {
				return nil
			}
			return one(&insight.Finding{Level: insight.Effect, Part: "metrics", What: "the target has zero replicas, which switches the autoscaler off", Evidence: []string{"status: " + c.Message}})
		}),
		on("scaler-at-limit", "the autoscaler wants more replicas than it may", func(_ *insight.Snapshot, h *autoscalingv2.HorizontalPodAutoscaler) []insight.Finding {
			c := condition(h, autoscalingv2.ScalingLimited, corev1.ConditionTrue, "TooManyReplicas")
			if c == nil {
				return nil
			}
			return one(&insight.Finding{Level: insight.Note, Part: "limit", What: fmt.Sprintf("more than the allowed %d replicas are wanted", h.Spec.MaxReplicas), Evidence: []string{"status: " + c.Message},
				Mend: []insight.Mend{insight.Patched("autoscaling", "v2", "horizontalpodautoscalers", insight.RefOf(h), fmt.Sprintf(`{"spec":{"maxReplicas":%d}}`, 2*h.Spec.MaxReplicas), "allows twice as many")}})
		}),
	}
}
