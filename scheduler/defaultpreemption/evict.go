package defaultpreemption

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/scheduler"
)

// earliest returns the start of the first of the most important victims.
func (c *candidate) earliest() time.Time {
	t := startTime(c.victims[0].Pod)
	for _, v := range c.victims {
		if s := startTime(v.Pod); v.Priority == c.victims[0].Priority && s.Before(t) {
			t = s
		}
	}
	return t
}

// evict deletes the victims beside the scheduling goroutine. Lower pods that were
// nominated for the node lose their nomination: they may no longer fit.
func (pl *plugin) evict(p *scheduler.PodInfo, c *candidate) {
	for _, other := range pl.f.NominatedPods(c.node) {
		if other.Priority < p.Priority {
			pl.f.ClearNomination(other)
		}
	}
	pl.f.Go(func(ctx context.Context) {
		for _, v := range c.victims {
			if err := pl.remove(ctx, p, v.Pod, c.node); err != nil {
				if ctx.Err() == nil {
					slog.Warn("preemption failed", base.KeyComponent, "scheduler",
						base.KeyPod, v.Pod.Namespace+"/"+v.Pod.Name, base.KeyNode, c.node, base.KeyError, err)
					pl.f.Activate(p.UID()) // no event will bring it back
				}
				return
			}
		}
	})
}

// remove takes one victim off its node.
func (pl *plugin) remove(ctx context.Context, p *scheduler.PodInfo, victim *v1.Pod, node string) error {
	if held := pl.f.WaitingPod(victim.UID); held != nil {
		held.Reject(Name, "preempted") // not bound yet: nothing to delete
	} else if victim.DeletionTimestamp == nil {
		err := scheduler.PatchCondition(ctx, pl.f.Client, victim, v1.PodCondition{
			Type: v1.DisruptionTarget, Status: v1.ConditionTrue, Reason: v1.PodReasonPreemptionByScheduler,
			Message:            fmt.Sprintf("%s: preempting to accommodate a higher priority pod", p.Pod.Spec.SchedulerName),
			ObservedGeneration: victim.Generation,
		})
		if err == nil {
			err = pl.f.Client.CoreV1().Pods(victim.Namespace).Delete(ctx, victim.Name,
				metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(victim.UID))})
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete victim %s/%s: %w", victim.Namespace, victim.Name, err)
		}
	}
	pl.f.Recorder.Eventf(victim, p.Pod, v1.EventTypeNormal, "Preempted", "Preempting", "Preempted by pod %v on node %v", p.UID(), node)
	return nil
}
