package volume

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A Host keeps the volumes of a node's pods. Its methods may be called at the
// same time; calls for one pod wait for each other.
type Host struct {
	config  Config
	tracker Tracker // Config.Sources if it is one, else nil

	mu    sync.Mutex // guards what follows, and the fields of podState that say so
	pods  map[types.UID]*podState
	index map[Ref]map[types.UID]*podState
	dirty map[types.UID]struct{} // to be refreshed by Run
	wake  chan struct{}          // holds one token if dirty is not empty
}

type podState struct {
	busy sync.Mutex // held while the pod's volumes are worked on

	// Guarded by Host.mu.
	pod       *corev1.Pod
	mounted   bool // Mount succeeded
	failed    bool // Mount failed last time
	gone      bool // replaced or unmounted: look the pod up again
	changes   int  // counts changes of objects in inVolumes
	inVolumes []Ref
	elsewhere []Ref
	timer     *time.Timer // next refresh for a token or after a failure
	backoff   time.Duration
}

// NewHost returns a Host. Nothing runs until Run is called; without Run volumes
// are mounted and unmounted but not refreshed.
func NewHost(c Config) (*Host, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	h := &Host{
		config: c,
		pods:   map[types.UID]*podState{},
		index:  map[Ref]map[types.UID]*podState{},
		dirty:  map[types.UID]struct{}{},
		wake:   make(chan struct{}, 1),
	}
	h.tracker, _ = c.Sources.(Tracker)
	return h, nil
}

// Track makes the objects that the pod refers to known to the Sources, so that
// they are at hand when Mount or the environment needs them. Mount does it too;
// calling Track as soon as the pod is known saves the time of the first read.
func (h *Host) Track(pod *corev1.Pod) { h.state(pod) }

// Mount makes all volumes of the pod that its containers use available and
// returns them by name. It is called before the pod's containers start and may
// be called again at any time. The error joins one *MountError per volume that
// failed, see MountErrors; the volumes that did not fail are returned with it.
func (h *Host) Mount(ctx context.Context, pod *corev1.Pod) (map[string]Mounted, error) {
	s := h.lock(pod)
	defer s.busy.Unlock()

	h.mu.Lock()
	changes := s.changes
	h.mu.Unlock()

	mounted, next, err := h.setUp(ctx, pod, false)

	h.mu.Lock()
	defer h.mu.Unlock()
	s.mounted, s.failed = s.mounted || err == nil, err != nil
	if s.changes != changes { // while we read
		if err == nil {
			h.markLocked(pod.UID)
		} else if h.config.Retry != nil {
			go h.config.Retry(pod.UID)
		}
	}
	h.scheduleLocked(s, next)
	return mounted, err
}

// Refresh brings the live volumes of a mounted pod up to date with pod, whose
// labels or annotations may have changed. It does nothing for a pod that is not mounted.
func (h *Host) Refresh(ctx context.Context, pod *corev1.Pod) error {
	h.mu.Lock()
	s := h.pods[pod.UID]
	known := s != nil && s.mounted
	h.mu.Unlock()
	if !known {
		return nil
	}
	s = h.lock(pod)
	defer s.busy.Unlock()
	_, next, err := h.setUp(ctx, pod, true)
	h.mu.Lock()
	defer h.mu.Unlock()
	if err == nil {
		s.backoff = 0
	} else {
		s.backoff = min(max(2*s.backoff, firstBackoff), lastBackoff)
		next = time.Now().Add(s.backoff)
	}
	h.scheduleLocked(s, next)
	return err
}

// lock returns the pod's state, for the newest version of the pod, with busy held.
func (h *Host) lock(pod *corev1.Pod) *podState {
	for {
		s := h.state(pod)
		s.busy.Lock()
		h.mu.Lock()
		gone := s.gone
		h.mu.Unlock()
		if !gone {
			return s
		}
		s.busy.Unlock()
	}
}

// state finds or makes the pod's state and brings the index up to date.
func (h *Host) state(pod *corev1.Pod) *podState {
	inVolumes, elsewhere := References(pod)
	h.mu.Lock()
	s := h.pods[pod.UID]
	if s == nil {
		s = &podState{}
		h.pods[pod.UID] = s
	}
	s.pod = pod
	changed := !slices.Equal(s.inVolumes, inVolumes) || !slices.Equal(s.elsewhere, elsewhere)
	if changed {
		h.unindexLocked(pod.UID, s)
		s.inVolumes, s.elsewhere = inVolumes, elsewhere
		for _, ref := range slices.Concat(inVolumes, elsewhere) {
			if h.index[ref] == nil {
				h.index[ref] = map[types.UID]*podState{}
			}
			h.index[ref][pod.UID] = s
		}
	}
	h.mu.Unlock()
	if changed && h.tracker != nil {
		h.tracker.AddPod(pod)
	}
	return s
}

func (h *Host) unindexLocked(uid types.UID, s *podState) {
	for _, ref := range slices.Concat(s.inVolumes, s.elsewhere) {
		delete(h.index[ref], uid)
		if len(h.index[ref]) == 0 {
			delete(h.index, ref)
		}
	}
}

// setUp sets the pod's volumes up side by side. next is when it must be done again, or zero.
func (h *Host) setUp(ctx context.Context, pod *corev1.Pod, onlyLive bool) (mounted map[string]Mounted, next time.Time, err error) {
	if err := checkUID(pod.UID); err != nil {
		return nil, next, err
	}
	used := usedVolumes(pod)
	mounted = make(map[string]Mounted, len(used))
	var (
		mu   sync.Mutex // guards mounted, next and errs
		errs []error
		wg   sync.WaitGroup
	)
	one := func(v *corev1.Volume, p Plugin) {
		m, err := h.setUpOne(ctx, pod, v, p)
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			errs = append(errs, &MountError{Volume: v.Name, Err: err})
			return
		}
		mounted[v.Name] = m
		if !m.RefreshAt.IsZero() && (next.IsZero() || m.RefreshAt.Before(next)) {
			next = m.RefreshAt
		}
	}
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if !used[v.Name] {
			continue
		}
		p := h.plugin(v)
		claim := claimName(pod, v) != ""
		switch {
		case claim && onlyLive: // a claim's content is not from the API
		case p == nil && !claim:
			mu.Lock()
			errs = append(errs, &MountError{Volume: v.Name, Err: ErrNoPlugin})
			mu.Unlock()
		case onlyLive && !p.Live():
		case len(used) == 1:
			one(v, p)
		default:
			wg.Go(func() { one(v, p) })
		}
	}
	wg.Wait()
	slices.SortFunc(errs, func(a, b error) int { // the same input gives the same text
		return strings.Compare(a.Error(), b.Error())
	})
	return mounted, next, errors.Join(errs...)
}

// setUpOne sets one volume up; p is nil for a claim, whose plug-in depends on what it is
// bound to.
func (h *Host) setUpOne(ctx context.Context, pod *corev1.Pod, v *corev1.Volume, p Plugin) (Mounted, error) {
	name := claimName(pod, v)
	if name == "" {
		return p.SetUp(ctx, h.request(pod, v, p))
	}
	r, p, err := h.persistent(ctx, pod, v, name)
	if err != nil {
		return Mounted{}, err
	}
	m, err := p.SetUp(ctx, r)
	m.ReadOnly = m.ReadOnly || r.ReadOnly
	return m, err
}

func (h *Host) plugin(v *corev1.Volume) Plugin {
	for _, p := range h.config.Plugins {
		if p.Supports(v) {
			return p
		}
	}
	return nil
}

func (h *Host) request(pod *corev1.Pod, v *corev1.Volume, p Plugin) Request {
	r := Request{Pod: pod, Volume: v, Dir: h.volumeDir(pod.UID, p.Name(), v.Name), Sources: h.config.Sources}
	if sc := pod.Spec.SecurityContext; sc != nil {
		r.FSGroup = sc.FSGroup
		if sc.FSGroupChangePolicy != nil {
			r.FSGroupPolicy = *sc.FSGroupChangePolicy
		}
	}
	return r
}
