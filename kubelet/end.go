package kubelet

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/periplus/periplus/base"
)

// end makes the pod end for a reason of the node's own: its status becomes the
// cause's when nothing of it runs any more. It reports false when the pod ends anyhow.
func (w *worker) end(c cause) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.pod == nil || w.removed || w.stopped || w.ordered != nil || w.admitted == nil {
		return false
	}
	w.ordered = &c
	if w.pod.DeletionTimestamp == nil && w.cancel != nil {
		w.cancel()
	}
	w.wakeLocked()
	return true
}

// takeOrder moves an order to end into the state, once.
func (w *worker) takeOrder() {
	w.mu.Lock()
	c, remove := w.ordered, w.removeDead
	w.removeDead = nil
	taken := w.orderTaken
	w.orderTaken = c != nil
	w.mu.Unlock()
	if c != nil && !taken && w.state.cause.phase == "" {
		w.state.cause = *c
		w.state.terminating = true
	}
	w.state.removeDead = append(w.state.removeDead, remove...)
}

// removeDead removes the containers of pods that have finished but still exist in
// the API; their statuses are kept. It waits for that, but not for ever.
func (k *Kubelet) removeDead(ctx context.Context) {
	k.mu.Lock()
	var asked []chan struct{}
	for _, w := range k.workers {
		st := w.status.last()
		if st == nil || !podFinished(st) {
			continue
		}
		done := make(chan struct{})
		w.mu.Lock()
		w.removeDead = append(w.removeDead, done)
		w.wakeLocked()
		w.mu.Unlock()
		asked = append(asked, done)
	}
	k.mu.Unlock()
	timeout := time.NewTimer(evictionWait)
	defer timeout.Stop()
	for _, done := range asked {
		select {
		case <-done:
		case <-timeout.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// cleared removes the containers of a pod that has ended, if that was asked for.
func (w *worker) cleared(ctx context.Context, pod *corev1.Pod) {
	s := &w.state
	if len(s.removeDead) == 0 {
		return
	}
	if err := w.k.removeAll(ctx, s.runtime); err != nil {
		w.k.log.Warn("cannot remove a finished pod's containers", base.KeyPod, pod.Namespace+"/"+pod.Name, base.KeyError, err)
	} else if s.runtime != nil {
		for _, c := range s.runtime.containers {
			w.removeLog(pod, c)
		}
		s.runtime = &podRuntime{}
	}
	for _, done := range s.removeDead {
		close(done)
	}
	s.removeDead = nil
}

// ended returns a channel that is closed when nothing of the pod runs any more.
func (w *worker) ended() <-chan struct{} {
	ch := make(chan struct{})
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.admitted == nil || w.stopped {
		close(ch)
		return ch
	}
	w.endings = append(w.endings, ch)
	return ch
}

func (w *worker) tellEnd() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, ch := range w.endings {
		close(ch)
	}
	w.endings = nil
}
