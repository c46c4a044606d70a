package kubelet

import corev1 "k8s.io/api/core/v1"

// phase settles status.phase, reason and message from the container statuses.
func (r *reporter) phase(st *corev1.PodStatus) {
	st.Phase = r.computedPhase(st)
	if r.cause.phase != "" {
		st.Reason, st.Message = r.cause.reason, r.cause.message
		// The phase is final only when nothing runs any more.
		st.Phase = r.old.Phase
		if r.terminated {
			st.Phase = r.cause.phase
		}
	}
	switch {
	case podFinished(r.old):
		st.Phase = r.old.Phase
	case podFinished(st) && r.terminating && !r.terminated && r.rt.anyRunning():
		st.Phase = corev1.PodRunning
	case r.terminated && !podFinished(st):
		st.Phase = corev1.PodFailed
	}
	if st.Phase == "" {
		st.Phase = corev1.PodPending
	}
}

func (r *reporter) computedPhase(st *corev1.PodStatus) corev1.PodPhase {
	spec := &r.pod.Spec
	var pending, failed, failedForGood int
	for i := range spec.InitContainers {
		c, s := &spec.InitContainers[i], &st.InitContainerStatuses[i]
		last := s.State.Terminated
		if s.State.Waiting != nil {
			last = s.LastTerminationState.Terminated
		}
		switch {
		case isSidecar(c):
			if s.Started == nil || !*s.Started {
				pending++
			}
		case last == nil:
			pending++
		case last.ExitCode != 0:
			failed++
			if s.State.Terminated != nil && !shouldRestart(r.pod, c, last.ExitCode) {
				failedForGood++
			}
		}
	}
	var unknown, running, waiting, stopped, succeeded, again int
	for i := range spec.Containers {
		s := &st.ContainerStatuses[i]
		switch {
		case s.State.Running != nil:
			running++
		case s.State.Terminated != nil:
			stopped++
			if s.State.Terminated.ExitCode == 0 {
				succeeded++
			}
			if shouldRestart(r.pod, &spec.Containers[i], s.State.Terminated.ExitCode) {
				again++
			}
		case s.State.Waiting != nil && s.LastTerminationState.Terminated != nil:
			stopped++
			again++
		case s.State.Waiting != nil:
			waiting++
		default:
			unknown++
		}
	}
	// Once an app container has run, sidecars that restart do not send the pod back.
	begun := running+stopped > 0
	switch {
	case failedForGood > 0 && !begun:
		return corev1.PodFailed
	case (pending > 0 || failed > 0) && !begun, waiting > 0:
		return corev1.PodPending
	case running > 0 && unknown == 0:
		return corev1.PodRunning
	case stopped > 0 && unknown == 0:
		switch {
		case again > 0 && !r.terminating:
			return corev1.PodRunning
		case stopped == succeeded:
			return corev1.PodSucceeded
		}
		return corev1.PodFailed
	}
	return corev1.PodPending
}
