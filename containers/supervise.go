package containers

import (
	"context"
	"os"
	"path/filepath"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/containers/monitor"
	"github.com/periplus/periplus/linux/cgroup"
)

// exit is how a container ended.
type exit = monitor.Exit

const (
	firstRetry = 50 * time.Millisecond
	maxRetry   = 5 * time.Second

	// emptyTimeout bounds the wait for processes that outlive their container.
	emptyTimeout = 10 * time.Second
)

// supervise keeps a monitor running and takes in what it reports. When one goes
// away its successor tells the whole state again, so nothing depends on which
// events were seen.
func (r *Runtime) supervise(ctx context.Context) error {
	retry := firstRetry
	for {
		err := r.watchMonitor(ctx, func() { retry = firstRetry })
		if ctx.Err() != nil || r.closing.Load() {
			<-ctx.Done()
			return nil
		}
		r.log.Warn("lost the container monitor, starting it again", base.KeyError, err)
		timer := time.NewTimer(retry)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil
		}
		retry = min(2*retry, maxRetry)
	}
}

func (r *Runtime) watchMonitor(ctx context.Context, synced func()) error {
	_, _, err := monitor.Ensure(ctx, r.monitorPath, monitor.ServerConfig{StateDir: r.cfg.StateDir, RunDir: r.cfg.RunDir})
	if err != nil {
		return err
	}
	seen := map[string]bool{} // nil after the first complete list
	defer r.monitor.down()
	return r.client.Watch(ctx, func(m monitor.Container) {
		if seen != nil {
			seen[m.ID] = true
		}
		r.observe(m)
	}, func() {
		r.missing(seen)
		seen = nil
		r.readyOnce.Do(func() {
			r.reconcileSandboxes(ctx)
			close(r.ready)
		})
		r.monitor.up()
		r.log.Info("connected to the container monitor")
		synced()
	})
}

// observe takes in what the monitor knows of one container.
func (r *Runtime) observe(m monitor.Container) {
	r.mu.Lock()
	c := r.containers[m.ID]
	r.mu.Unlock()
	if c == nil {
		// Its record is gone: it was being removed when an earlier process ended.
		r.background.Go(func() { r.discard(m) })
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.state == runtimeapi.ContainerState_CONTAINER_EXITED:
	case c.starting:
		c.early = m.Exit // StartContainer has not heard yet that it was started
	default:
		// An earlier process of ours asked for it and did not live to see it start.
		unseen := c.state == runtimeapi.ContainerState_CONTAINER_CREATED
		c.runningLocked(m)
		if unseen && !c.rec.Pause {
			r.background.Go(func() { r.emit(c.rec.SandboxID, c.rec.ID, runtimeapi.ContainerEventType_CONTAINER_STARTED_EVENT) })
		}
		if m.Exit != nil {
			r.endLocked(c, *m.Exit)
		}
	}
}

func (c *container) runningLocked(m monitor.Container) {
	c.pid, c.startedAt = m.PID, m.Started
	c.state = runtimeapi.ContainerState_CONTAINER_RUNNING
}

// missing ends the containers that the monitor should know and does not.
func (r *Runtime) missing(seen map[string]bool) {
	for _, c := range r.allContainers() {
		c.mu.Lock()
		if c.state == runtimeapi.ContainerState_CONTAINER_RUNNING && !seen[c.rec.ID] {
			r.endLocked(c, exit{Code: 255, Unknown: true, At: time.Now()})
		}
		c.mu.Unlock()
	}
}

// endLocked deals with a container's end in the background, once.
func (r *Runtime) endLocked(c *container, e exit) {
	if c.ending {
		return
	}
	c.ending = true
	r.background.Go(func() { r.ended(c, e) })
}

// ended frees what a container held while it ran, then changes its state and
// tells everybody. The cgroup goes first, so that whoever hears of the end can
// remove the pod's cgroup.
func (r *Runtime) ended(c *container, e exit) {
	r.freeCgroup(c.rec.ID, c.rec.CgroupPath)
	c.mu.Lock()
	c.state = runtimeapi.ContainerState_CONTAINER_EXITED
	c.finishedAt, c.exitCode = e.At, int32(e.Code)
	c.reason = exitReason(e)
	c.pid = 0
	c.mu.Unlock()
	close(c.exited)
	if !c.rec.Pause {
		r.emit(c.rec.SandboxID, c.rec.ID, runtimeapi.ContainerEventType_CONTAINER_STOPPED_EVENT)
	}
}

func (r *Runtime) freeCgroup(id, path string) {
	ctx, cancel := context.WithTimeout(context.Background(), emptyTimeout)
	defer cancel()
	err := cgroup.Empty(ctx, path)
	if err == nil {
		err = cgroup.Remove(path)
	}
	if err != nil {
		r.log.Warn("cannot remove a container's cgroup", base.KeyID, id, base.KeyPath, path, base.KeyError, err)
	}
	// What "delete" would do: the OCI runtime has no hooks of ours to run, so its
	// process is saved.
	_ = os.RemoveAll(filepath.Join(r.oci.Root, id))
}

// exitReason is what kubectl shows.
func exitReason(e exit) string {
	switch {
	case e.OOM:
		return "OOMKilled"
	case e.Unknown:
		return "Unknown"
	case e.Code == 0:
		return "Completed"
	}
	return "Error"
}

// discard ends and forgets a container that has no record.
func (r *Runtime) discard(m monitor.Container) {
	ctx, cancel := context.WithTimeout(context.Background(), emptyTimeout)
	defer cancel()
	if m.Exit == nil {
		// Its end comes as another event, and with it we come here again.
		_ = r.client.Signal(ctx, m.ID, 9)
		return
	}
	_ = r.client.Forget(ctx, m.ID)
	_ = os.RemoveAll(filepath.Join(r.oci.Root, m.ID))
}

// reconcileSandboxes brings sandboxes to a state that calls can go on from:
// half-made ones are destroyed, those whose namespaces are gone are not ready,
// and the network frees what belongs to nobody.
func (r *Runtime) reconcileSandboxes(ctx context.Context) {
	keep := map[string]bool{}
	for _, s := range r.allSandboxes() {
		switch {
		case s.rec.Phase == phaseMaking:
			if err := r.removeSandbox(ctx, s, 0); err != nil {
				r.log.Warn("cannot remove a half-made sandbox", base.KeyID, s.rec.ID, base.KeyError, err)
			}
			continue
		case s.rec.Phase == phaseReady && !r.sandboxAlive(s):
			s.mu.Lock()
			s.rec.Phase = phaseStopped
			s.mu.Unlock()
		}
		keep[s.rec.ID] = true
	}
	if err := r.cfg.Network.Collect(ctx, keep); err != nil {
		r.log.Warn("cannot free unused network attachments", base.KeyError, err)
	}
	r.collectSnapshots(ctx)
}

func (r *Runtime) sandboxAlive(s *podSandbox) bool {
	if !s.rec.Sandbox.Intact() {
		return false
	}
	if !s.rec.Pause {
		return true
	}
	r.mu.Lock()
	pause := r.containers[s.rec.ID]
	r.mu.Unlock()
	if pause == nil {
		return false
	}
	state, _ := pause.snapshotState()
	return state == runtimeapi.ContainerState_CONTAINER_RUNNING
}

// collectSnapshots removes root file systems of containers that are gone.
func (r *Runtime) collectSnapshots(ctx context.Context) {
	known := map[string]bool{}
	for _, c := range r.allContainers() {
		known[c.rec.ID] = true
		for _, v := range c.rec.Volumes {
			known[v] = true
		}
	}
	for _, id := range r.cfg.Snapshots.Prepared() {
		if !known[id] {
			_ = r.cfg.Snapshots.Unmount(ctx, filepath.Join(r.containerDir(id), "rootfs"))
			if err := r.cfg.Snapshots.Remove(ctx, id); err != nil {
				r.log.Warn("cannot remove an unused root file system", base.KeyID, id, base.KeyError, err)
			}
		}
	}
}
