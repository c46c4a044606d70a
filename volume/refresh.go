package volume

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/periplus/periplus/base"
)

// How long to wait after a refresh that failed.
const (
	firstBackoff = time.Second
	lastBackoff  = 2 * time.Minute
	// Tokens of many pods that started together are not renewed at one moment.
	refreshers = 4
)

// Run refreshes the live volumes of mounted pods when their sources change or
// their tokens near their end, until ctx ends.
func (h *Host) Run(ctx context.Context) error {
	slots := make(chan struct{}, refreshers)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer h.stopTimers()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-h.wake:
		}
		for _, uid := range h.takeDirty() {
			select {
			case <-ctx.Done():
				return nil
			case slots <- struct{}{}:
			}
			wg.Go(func() {
				defer func() { <-slots }()
				h.refresh(ctx, uid)
			})
		}
	}
}

func (h *Host) takeDirty() []types.UID {
	h.mu.Lock()
	defer h.mu.Unlock()
	uids := make([]types.UID, 0, len(h.dirty))
	for uid := range h.dirty {
		uids = append(uids, uid)
	}
	clear(h.dirty)
	return uids
}

func (h *Host) refresh(ctx context.Context, uid types.UID) {
	h.mu.Lock()
	s := h.pods[uid]
	if s == nil || !s.mounted {
		h.mu.Unlock()
		return
	}
	pod := s.pod
	h.mu.Unlock()

	err := h.Refresh(ctx, pod)
	if err == nil || ctx.Err() != nil {
		return
	}
	h.config.Log.Warn("volumes of a running pod cannot be refreshed", base.KeyPod, pod.Namespace+"/"+pod.Name,
		base.KeyUID, uid, base.KeyError, err)
	if h.config.Failed != nil {
		for _, e := range MountErrors(err) {
			go h.config.Failed(pod, e)
		}
	}
}

// scheduleLocked sets the one timer of the pod; a zero time means none.
func (h *Host) scheduleLocked(s *podState, at time.Time) {
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
	if at.IsZero() || s.gone {
		return
	}
	uid := s.pod.UID
	s.timer = time.AfterFunc(max(time.Until(at), 0), func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.markLocked(uid)
	})
}

func (h *Host) stopTimers() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.pods {
		if s.timer != nil {
			s.timer.Stop()
		}
	}
}

func (h *Host) markLocked(uid types.UID) {
	h.dirty[uid] = struct{}{}
	select {
	case h.wake <- struct{}{}:
	default: // Run has a token already
	}
}

// SourceChanged tells the Host that an object that a Ref stands for was added,
// changed or deleted. It does not block.
func (h *Host) SourceChanged(kind, namespace, name string) {
	ref := Ref{kind, namespace, name}
	var retry []types.UID
	h.mu.Lock()
	for uid, s := range h.index[ref] {
		if has(s.inVolumes, ref) {
			s.changes++
			if s.mounted {
				h.markLocked(uid)
			}
		}
		if s.failed || has(s.elsewhere, ref) {
			retry = append(retry, uid)
		}
	}
	h.mu.Unlock()
	if h.config.Retry == nil {
		return
	}
	for _, uid := range retry {
		h.config.Retry(uid)
	}
}

func has(refs []Ref, ref Ref) bool {
	return slices.Contains(refs, ref)
}

// Dependents returns the pods that refer to the object, in whatever way.
func (h *Host) Dependents(kind, namespace, name string) []types.UID {
	h.mu.Lock()
	defer h.mu.Unlock()
	var uids []types.UID
	for uid := range h.index[Ref{kind, namespace, name}] {
		uids = append(uids, uid)
	}
	return uids
}
