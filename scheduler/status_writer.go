package scheduler

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/periplus/periplus/base"
)

// statusWriters is how many patches are under way at most.
const statusWriters = 8

// A StatusWriter patches the status of pods in the background, so that pods that find
// no node do not slow down those that do. Per pod only the newest wish is kept, and
// at most one patch is under way. Its goroutines exist only while there is work.
type StatusWriter struct {
	client kubernetes.Interface
	log    *slog.Logger
	ctx    context.Context
	stop   context.CancelFunc

	mu      sync.Mutex
	idle    *sync.Cond               // signalled when a patch is done
	wishes  map[types.UID]statusWish // not yet under way; guarded by mu
	order   []types.UID              // of wishes, may name some that are gone; guarded by mu
	writing map[types.UID]bool       // under way; guarded by mu
	workers int                      // guarded by mu
	closed  bool                     // guarded by mu
}

type statusWish struct {
	pod       *v1.Pod
	condition v1.PodCondition
	nominate  *PostFilterResult
}

func newStatusWriter(client kubernetes.Interface, log *slog.Logger) *StatusWriter {
	ctx, stop := context.WithCancel(context.Background())
	w := &StatusWriter{client: client, log: log, ctx: ctx, stop: stop,
		wishes: map[types.UID]statusWish{}, writing: map[types.UID]bool{}}
	w.idle = sync.NewCond(&w.mu)
	return w
}

// Condition sets a condition of the pod and, when nominate is not nil, its
// nominatedNodeName. Nothing is written when pod already has both.
func (w *StatusWriter) Condition(pod *v1.Pod, c v1.PodCondition, nominate *PostFilterResult) {
	w.add(statusWish{pod, c, nominate})
}

// ClearNomination empties the pod's nominatedNodeName.
func (w *StatusWriter) ClearNomination(pod *v1.Pod) {
	if old := podCondition(&pod.Status, v1.PodScheduled); old != nil {
		w.add(statusWish{pod, *old, &PostFilterResult{}})
	}
}

func (w *StatusWriter) add(wish statusWish) {
	pod := wish.pod
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return
	}
	if _, ok := w.wishes[pod.UID]; !ok {
		w.order = append(w.order, pod.UID)
	}
	w.wishes[pod.UID] = wish
	if w.workers < statusWriters && w.workers < len(w.order) {
		w.workers++
		go w.work()
	}
}

// Forget drops what is not yet under way for a pod.
func (w *StatusWriter) Forget(uid types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.wishes, uid)
}

// Settle is Forget, and waits for a patch that is under way.
func (w *StatusWriter) Settle(uid types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.wishes, uid)
	for w.writing[uid] {
		w.idle.Wait()
	}
}

// close ends all writing and waits for it.
func (w *StatusWriter) close() {
	w.stop()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	for w.workers > 0 {
		w.idle.Wait()
	}
}

func (w *StatusWriter) work() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for !w.closed {
		uid, wish, ok := w.nextLocked()
		if !ok {
			break
		}
		w.writing[uid] = true
		w.mu.Unlock()
		w.write(wish)
		w.mu.Lock()
		delete(w.writing, uid)
		w.idle.Broadcast()
	}
	w.workers--
	w.idle.Broadcast()
}

// nextLocked takes the oldest wish of a pod that is not being written.
func (w *StatusWriter) nextLocked() (types.UID, statusWish, bool) {
	for i := 0; i < len(w.order); i++ {
		uid := w.order[i]
		wish, ok := w.wishes[uid]
		if ok && w.writing[uid] {
			continue
		}
		w.order = append(w.order[:i], w.order[i+1:]...)
		if !ok {
			i--
			continue
		}
		delete(w.wishes, uid)
		return uid, wish, true
	}
	return "", statusWish{}, false
}

func (w *StatusWriter) write(wish statusWish) {
	patch := wish.patch()
	if patch == nil {
		return
	}
	_, err := w.client.CoreV1().Pods(wish.pod.Namespace).Patch(w.ctx, wish.pod.Name,
		types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil && w.ctx.Err() == nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		w.log.Warn("pod status was not updated", base.KeyPod, wish.pod.Namespace+"/"+wish.pod.Name, base.KeyError, err)
	}
}

// patch returns the difference to the pod's status, nil when there is none.
func (wish *statusWish) patch() []byte {
	status := map[string]any{}
	if c := changedCondition(wish.pod, wish.condition); c != nil {
		status["conditions"] = []v1.PodCondition{*c}
	}
	if n := wish.nominate; n != nil && n.Nominated != wish.pod.Status.NominatedNodeName {
		if status["nominatedNodeName"] = n.Nominated; n.Nominated == "" {
			status["nominatedNodeName"] = nil
		}
	}
	return statusPatch(wish.pod, status)
}

// statusPatch returns a patch of the status, nil when it is empty. The UID guards
// against a pod of the same name.
func statusPatch(pod *v1.Pod, status map[string]any) []byte {
	if len(status) == 0 {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": pod.UID}, "status": status})
	if err != nil {
		return nil // a condition always marshals
	}
	return patch
}

// changedCondition completes c, nil when the pod has it already.
func changedCondition(pod *v1.Pod, c v1.PodCondition) *v1.PodCondition {
	old := podCondition(&pod.Status, c.Type)
	switch {
	case old == nil || old.Status != c.Status:
		c.LastTransitionTime = metav1.Now()
	case old.Reason != c.Reason || old.Message != c.Message || old.ObservedGeneration != c.ObservedGeneration:
		c.LastTransitionTime = old.LastTransitionTime
	default:
		return nil
	}
	return &c
}

// PatchCondition sets a condition of the pod at once, if it does not have it.
func PatchCondition(ctx context.Context, client kubernetes.Interface, pod *v1.Pod, c v1.PodCondition) error {
	changed := changedCondition(pod, c)
	if changed == nil {
		return nil
	}
	patch := statusPatch(pod, map[string]any{"conditions": []v1.PodCondition{*changed}})
	_, err := client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

func podCondition(s *v1.PodStatus, t v1.PodConditionType) *v1.PodCondition {
	for i := range s.Conditions {
		if s.Conditions[i].Type == t {
			return &s.Conditions[i]
		}
	}
	return nil
}
