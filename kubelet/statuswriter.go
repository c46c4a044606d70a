package kubelet

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/client/conditions"
)

// A statusWriter brings the newest status of one pod to the API: one write at a
// time, none when nothing changed, and whatever became obsolete in between is
// never sent. Its goroutine exists while there is something to write.
type statusWriter struct {
	k   *Kubelet
	uid types.UID

	mu      sync.Mutex        // guards the rest
	base    *corev1.Pod       // the newest version that the API is known to have
	want    *corev1.PodStatus // what it is to become
	timer   *time.Timer
	writing bool
	settled chan struct{} // closed when writing ends; made on demand
	gone    bool          // the API has no such pod
	stopped bool
	saved   *corev1.PodStatus // what is kept for a later life, because the API could not be told
}

func newStatusWriter(k *Kubelet, uid types.UID) *statusWriter {
	s := &statusWriter{k: k, uid: uid}
	if k.cfg.Statuses != nil {
		s.saved = k.cfg.Statuses.Load(uid)
		s.want = s.saved
	}
	return s
}

// observed takes over a version of the pod that came from the API.
func (s *statusWriter) observed(pod *corev1.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.base == nil || newer(pod, s.base) {
		s.base = pod
		if s.timer == nil && s.k.ctx != nil {
			s.startLocked() // somebody else wrote over it, or there was nothing to write to before
		}
	}
}

// lost is called when a static pod's mirror is gone: there will be another.
func (s *statusWriter) lost() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.base, s.gone = nil, false
}

// newer compares versions of the same pod; what cannot be compared counts as newer.
func newer(a, b *corev1.Pod) bool {
	c, err := resourceversion.CompareResourceVersion(a.ResourceVersion, b.ResourceVersion)
	return err != nil || c > 0
}

// last is the newest status: what is to be written, else what the API has.
func (s *statusWriter) last() *corev1.PodStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.want != nil:
		return s.want
	case s.base != nil:
		return &s.base.Status
	}
	return nil
}

// set asks for st to be written after delay at most.
func (s *statusWriter) set(st *corev1.PodStatus, delay time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.want = st
	if s.stopped || s.gone || s.base == nil || s.k.ctx == nil {
		return
	}
	if delay > 0 {
		if s.timer == nil && !s.writing {
			s.timer = time.AfterFunc(delay, func() {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.timer = nil
				s.startLocked()
			})
		}
		return
	}
	s.startLocked()
}

func (s *statusWriter) startLocked() {
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
	if s.writing || s.stopped || s.gone || s.want == nil || s.base == nil || s.k.ctx.Err() != nil {
		return
	}
	if merged := mergeStatus(&s.base.Status, s.want); apiequality.Semantic.DeepEqual(merged, &s.base.Status) {
		return
	}
	s.writing = true
	s.k.tasks.Go(s.write)
}

// write sends until the API has what is wanted.
func (s *statusWriter) write() {
	delay := 100 * time.Millisecond
	for {
		s.mu.Lock()
		if s.base == nil {
			s.endLocked()
			s.mu.Unlock()
			return
		}
		merged := mergeStatus(&s.base.Status, s.want)
		if s.stopped || s.gone || apiequality.Semantic.DeepEqual(merged, &s.base.Status) {
			s.endLocked()
			s.mu.Unlock()
			return
		}
		from := s.base
		s.mu.Unlock()

		got, err := s.patch(s.k.ctx, from, merged)

		s.mu.Lock()
		switch {
		case err == nil:
			if s.base == from || s.base != nil && newer(got, s.base) {
				s.base = got
			}
			delay = 100 * time.Millisecond
			s.saveLocked(nil)
		case apierrors.IsNotFound(err), apierrors.IsConflict(err):
			s.gone = true // gone, or another pod of the name
		default:
			s.saveLocked(merged)
			s.mu.Unlock()
			s.k.log.Warn("cannot write a pod's status", base.KeyPod, from.Namespace+"/"+from.Name, base.KeyUID, s.uid, base.KeyError, err)
			select {
			case <-s.k.ctx.Done():
				s.mu.Lock()
				s.endLocked()
				s.mu.Unlock()
				return
			case <-time.After(delay):
			}
			delay = min(2*delay, 10*time.Second)
			continue
		}
		s.mu.Unlock()
	}
}

// saveLocked keeps what the API could not be told; nil: it has been.
func (s *statusWriter) saveLocked(status *corev1.PodStatus) {
	if s.k.cfg.Statuses == nil || status == s.saved || status != nil && apiequality.Semantic.DeepEqual(status, s.saved) {
		return
	}
	s.saved = status
	s.k.cfg.Statuses.Save(s.uid, status)
}

func (s *statusWriter) endLocked() {
	s.writing = false
	if s.settled != nil {
		close(s.settled)
		s.settled = nil
	}
}

// patch is a strategic merge patch of the difference, for exactly this pod.
func (s *statusWriter) patch(ctx context.Context, from *corev1.Pod, to *corev1.PodStatus) (*corev1.Pod, error) {
	oldJSON, err := json.Marshal(corev1.Pod{Status: from.Status})
	if err != nil {
		return nil, err
	}
	newJSON, err := json.Marshal(corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: from.UID}, Status: *to})
	if err != nil {
		return nil, err
	}
	patch, err := strategicpatch.CreateTwoWayMergePatch(oldJSON, newJSON, corev1.Pod{})
	if err != nil {
		return nil, fmt.Errorf("making the patch of a pod's status: %w", err)
	}
	return s.k.cfg.Client.CoreV1().Pods(from.Namespace).Patch(ctx, from.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
}

// flush waits until what is wanted has been written or the pod is gone.
func (s *statusWriter) flush(ctx context.Context) error {
	s.mu.Lock()
	s.startLocked()
	if !s.writing {
		s.mu.Unlock()
		return nil
	}
	if s.settled == nil {
		s.settled = make(chan struct{})
	}
	settled := s.settled
	s.mu.Unlock()
	select {
	case <-settled:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// drop is called when the API has forgotten the pod.
func (s *statusWriter) drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone = true
	s.saveLocked(nil)
}

func (s *statusWriter) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
}

// mergeStatus is old with the kubelet's part replaced by want's. Conditions of
// others stay; a condition whose status did not change keeps its times.
func mergeStatus(old, want *corev1.PodStatus) *corev1.PodStatus {
	out := *old
	out.ObservedGeneration = want.ObservedGeneration
	out.Phase, out.Reason, out.Message = want.Phase, want.Reason, want.Message
	if podFinished(old) {
		out.Phase, out.Reason, out.Message = old.Phase, old.Reason, old.Message
	}
	out.HostIP, out.HostIPs = want.HostIP, want.HostIPs
	out.PodIP, out.PodIPs = want.PodIP, want.PodIPs
	if old.StartTime == nil || old.StartTime.IsZero() {
		out.StartTime = want.StartTime
	}
	out.InitContainerStatuses = want.InitContainerStatuses
	out.ContainerStatuses = want.ContainerStatuses
	out.EphemeralContainerStatuses = want.EphemeralContainerStatuses

	out.Conditions = nil
	for _, c := range want.Conditions {
		prev := conditions.Pod(old, c.Type)
		switch {
		case prev != nil && c.Type == corev1.PodScheduled && prev.Status == c.Status:
			c.LastTransitionTime, c.LastProbeTime = prev.LastTransitionTime, prev.LastProbeTime
		case prev != nil && prev.Status == c.Status:
			c.LastTransitionTime = prev.LastTransitionTime
		default:
			c.LastTransitionTime = metav1.Now().Rfc3339Copy()
		}
		out.Conditions = append(out.Conditions, c)
	}
	for _, c := range old.Conditions {
		if !ownedConditions[c.Type] && conditions.Pod(want, c.Type) == nil {
			out.Conditions = append(out.Conditions, c)
		}
	}
	return &out
}
