package kubelet

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/periplus/periplus/base"
)

// collect removes what a living pod does not need any more: containers that do
// not run but the newest and the newest dead one of each name, with their logs,
// and dead sandboxes without containers.
func (w *worker) collect(ctx context.Context, pod *corev1.Pod) {
	rt := w.state.runtime
	newest := map[string]bool{} // how it is
	dead := map[string]bool{}   // how it was
	used := map[string]bool{}   // sandboxes
	var remaining []*container
	for _, c := range rt.containers {
		keep := c.running() || !newest[c.name] || c.exited() && !dead[c.name]
		newest[c.name] = true
		if c.exited() {
			dead[c.name] = true
		}
		if keep {
			used[c.sandboxID] = true
			remaining = append(remaining, c)
			continue
		}
		if err := w.k.removeContainer(ctx, c.id); err != nil {
			w.k.log.Warn("cannot remove a dead container", base.KeyID, c.id, base.KeyError, err)
			remaining = append(remaining, c)
			continue
		}
		w.removeLog(pod, c)
	}
	rt.containers = remaining
	for i := len(rt.sandboxes) - 1; i > 0; i-- {
		b := rt.sandboxes[i]
		if b.ready || used[b.id] {
			continue
		}
		if _, err := w.k.cfg.Runtime.RemovePodSandbox(ctx, &runtimeapi.RemovePodSandboxRequest{PodSandboxId: b.id}); err == nil || isNotFound(err) {
			rt.sandboxes = append(rt.sandboxes[:i:i], rt.sandboxes[i+1:]...)
		}
	}
}

// removeLog removes the log files of a removed container, rotated ones too.
func (w *worker) removeLog(pod *corev1.Pod, c *container) {
	path := filepath.Join(w.k.podLogDir(pod), containerLog(c.name, c.restarts))
	os.Remove(path)
	if rotated, err := filepath.Glob(path + ".*"); err == nil {
		for _, p := range rotated {
			os.Remove(p)
		}
	}
}

// reapOrphans ends pods that only the runtime or the disk know. It does nothing
// until both the runtime was listed and the API's pods are complete.
func (k *Kubelet) reapOrphans(ctx context.Context) {
	k.mu.Lock()
	ready := k.listed == 2 && k.seen != nil
	var orphans []types.UID
	known := map[string]bool{}
	if ready {
		for uid := range k.seen {
			if k.workers[uid] == nil && !slices.Contains(k.live, uid) {
				orphans = append(orphans, uid)
			}
		}
		for uid := range k.workers {
			known[string(uid)] = true
		}
		for _, uid := range k.live {
			known[string(uid)] = true // its event is on the way
		}
		k.seen = map[types.UID]bool{}
	}
	k.mu.Unlock()
	if !ready {
		return
	}
	for _, uid := range orphans {
		k.tasks.Go(func() { k.reap(ctx, uid) })
		known[string(uid)] = true
	}
	k.reapDirs(ctx, known)
	k.particular.keep(ctx, func(uid types.UID) bool { return known[string(uid)] })
}

// reap ends a pod of which nothing but its UID is known.
func (k *Kubelet) reap(ctx context.Context, uid types.UID) {
	k.log.Info("ending a pod that the API does not know", base.KeyUID, uid)
	delay := time.Second
	for {
		err := k.tryReap(ctx, uid)
		if err == nil || ctx.Err() != nil {
			return
		}
		k.log.Warn("cannot end an unknown pod", base.KeyUID, uid, base.KeyError, err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(delay):
			delay = min(2*delay, time.Minute)
		}
	}
}

func (k *Kubelet) tryReap(ctx context.Context, uid types.UID) error {
	rt, err := k.observe(ctx, uid, nil)
	if err != nil {
		return err
	}
	second := int64(1)
	if err := k.killPod(ctx, &corev1.Pod{}, rt, &second); err != nil {
		return err
	}
	if k.cfg.Volumes != nil {
		if err := k.cfg.Volumes.Unmount(ctx, uid); err != nil {
			return err
		}
	}
	if err := k.particular.claims.Unprepare(ctx, uid); err != nil {
		return err
	}
	k.particular.free(uid)
	if k.cfg.Cgroups != nil {
		if err := k.cfg.Cgroups.Remove(uid); err != nil {
			return err
		}
	}
	if err := k.removeAll(ctx, rt); err != nil {
		return err
	}
	k.removeDirs(uid)
	return nil
}

// reapDirs removes what is left on disk of pods that are gone.
func (k *Kubelet) reapDirs(ctx context.Context, known map[string]bool) {
	entries, _ := os.ReadDir(filepath.Join(k.cfg.RootDir, "pods"))
	for _, e := range entries {
		uid := types.UID(e.Name())
		if known[e.Name()] || !e.IsDir() {
			continue
		}
		if k.cfg.Volumes != nil {
			if err := k.cfg.Volumes.Unmount(ctx, uid); err != nil {
				k.log.Warn("cannot unmount the volumes of a pod that is gone", base.KeyUID, uid, base.KeyError, err)
				continue
			}
		}
		if k.cfg.Cgroups != nil {
			if err := k.cfg.Cgroups.Remove(uid); err != nil {
				k.log.Warn("cannot remove the cgroup of a pod that is gone", base.KeyUID, uid, base.KeyError, err)
			}
		}
		k.removeDirs(uid)
	}
	logs, _ := os.ReadDir(k.cfg.LogDir)
	for _, e := range logs {
		if i := strings.LastIndexByte(e.Name(), '_'); i >= 0 && e.IsDir() && !known[e.Name()[i+1:]] {
			os.RemoveAll(filepath.Join(k.cfg.LogDir, e.Name()))
		}
	}
}

func (k *Kubelet) removeDirs(uid types.UID) {
	os.RemoveAll(filepath.Join(k.cfg.RootDir, "pods", string(uid)))
	if logs, err := filepath.Glob(filepath.Join(k.cfg.LogDir, "*_"+string(uid))); err == nil {
		for _, dir := range logs {
			os.RemoveAll(dir)
		}
	}
}
