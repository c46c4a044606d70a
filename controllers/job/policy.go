package job

import (
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// rule finds the first rule of the Job's pod failure policy that a failed pod
// matches, and the words for it.
func (p *pass) rule(pod *corev1.Pod) (action batchv1.PodFailurePolicyAction, message string) {
	if p.job.Spec.PodFailurePolicy == nil || pod.Status.Phase != corev1.PodFailed {
		return "", ""
	}
	for i := range p.job.Spec.PodFailurePolicy.Rules {
		r := &p.job.Spec.PodFailurePolicy.Rules[i]
		if r.OnExitCodes != nil {
			if s := matchExitCodes(pod, r.OnExitCodes); s != nil {
				return r.Action, fmt.Sprintf("Container %s for pod %s/%s failed with exit code %v matching %v rule at index %d",
					s.Name, pod.Namespace, pod.Name, s.State.Terminated.ExitCode, r.Action, i)
			}
			continue
		}
		if c := matchConditions(pod, r.OnPodConditions); c != nil {
			return r.Action, fmt.Sprintf("Pod %s/%s has condition %v matching %v rule at index %d",
				pod.Namespace, pod.Name, c.Type, r.Action, i)
		}
	}
	return "", ""
}

// ignored applies the policy to a newly failed pod: it notes what fails the Job or
// the index, and says whether the failure does not count.
func (p *pass) ignored(pod *corev1.Pod) bool {
	switch action, message := p.rule(pod); action {
	case batchv1.PodFailurePolicyActionIgnore:
		return true
	case batchv1.PodFailurePolicyActionFailJob:
		if p.policyFails == "" {
			p.policyFails = message
		}
	case batchv1.PodFailurePolicyActionFailIndex:
		if i := indexOf(pod); p.perIndex != nil && i >= 0 {
			p.lost.add(i)
		}
	}
	return false
}

func matchExitCodes(pod *corev1.Pod, want *batchv1.PodFailurePolicyOnExitCodesRequirement) *corev1.ContainerStatus {
	for _, list := range [][]corev1.ContainerStatus{pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses} {
		for i := range list {
			s := &list[i]
			if want.ContainerName != nil && *want.ContainerName != s.Name || s.State.Terminated == nil || s.State.Terminated.ExitCode == 0 {
				continue
			}
			in := slices.Contains(want.Values, s.State.Terminated.ExitCode)
			if in == (want.Operator == batchv1.PodFailurePolicyOnExitCodesOpIn) {
				return s
			}
		}
	}
	return nil
}

func matchConditions(pod *corev1.Pod, patterns []batchv1.PodFailurePolicyOnPodConditionsPattern) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		c := &pod.Status.Conditions[i]
		for _, want := range patterns {
			status := want.Status
			if status == "" {
				status = corev1.ConditionTrue
			}
			if c.Type == want.Type && c.Status == status {
				return c
			}
		}
	}
	return nil
}

// successPolicyMet returns the words for the first rule of the success policy that
// the completed indexes fulfil; empty if none.
func (p *pass) successPolicyMet() string {
	if p.job.Spec.SuccessPolicy == nil || !p.indexed() {
		return ""
	}
	for i, r := range p.job.Spec.SuccessPolicy.Rules {
		matched := p.done.len()
		if r.SucceededIndexes != nil {
			wanted := parseIndexes(*r.SucceededIndexes, p.completions())
			matched = 0
			for index := range wanted {
				if p.done.has(index) {
					matched++
				}
			}
			if r.SucceededCount == nil && matched < wanted.len() {
				continue
			}
		}
		if r.SucceededCount != nil && matched < int(*r.SucceededCount) {
			continue
		}
		return fmt.Sprintf("Matched rules at index %d", i)
	}
	return ""
}
