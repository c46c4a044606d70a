package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// measureScale scales a Deployment up and down again.
func measureScale(ctx context.Context, b *bench) (err error) {
	c, err := b.open(ctx)
	if err != nil {
		return err
	}
	const name = "scale"
	if _, err := c.client.AppsV1().Deployments(namespace).Create(ctx, c.workload(name, 0), metav1.CreateOptions{}); err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, c.client.AppsV1().Deployments(namespace).Delete(context.WithoutCancel(ctx), name, metav1.DeleteOptions{}))
	}()
	before, err := c.usage()
	if err != nil {
		return err
	}
	var each []time.Duration
	seen := map[string]bool{}
	begin := time.Now()
	up, err := c.pods(ctx, name, func(_ watch.EventType, p *corev1.Pod) bool {
		if ready(p) && !seen[p.Name] {
			seen[p.Name] = true
			each = append(each, time.Since(begin))
		}
		return len(seen) == int(b.scale)
	})
	if err != nil {
		return err
	}
	if err := c.scale(ctx, name, b.scale); err != nil {
		return err
	}
	if err := <-up; err != nil {
		return fmt.Errorf("%d of %d Ready: %w", len(seen), b.scale, err)
	}
	after, err := c.usage()
	if err != nil {
		return err
	}
	b.results.durations(fmt.Sprintf("Deployment 0 → %d, each pod Ready", b.scale), each, "", "15000-18000 ms (all)")
	b.results.add(figure{
		Name: fmt.Sprintf("Deployment 0 → %d, CPU per pod", b.scale), Unit: "ms", Value: ms(after.CPU-before.CPU) / float64(b.scale),
		Note: "of peri and its monitor, not of the OCI runtime",
	})
	if err := wait(ctx, b.settle); err != nil {
		return err
	}
	if err := b.idleFor(ctx, c, fmt.Sprintf("idle with %d pods", b.scale), b.settle, idlePeers{upstreamCPU: "28 %"}); err != nil {
		return err
	}
	left := int(b.scale)
	down, err := c.pods(ctx, name, func(t watch.EventType, _ *corev1.Pod) bool {
		if t == watch.Deleted {
			left--
		}
		return left == 0
	})
	if err != nil {
		return err
	}
	begin = time.Now()
	if err := c.scale(ctx, name, 0); err != nil {
		return err
	}
	if err := <-down; err != nil {
		return fmt.Errorf("%d of %d left: %w", left, b.scale, err)
	}
	b.results.add(figure{Name: fmt.Sprintf("Deployment %d → 0, all gone", b.scale), Unit: "ms", Value: ms(time.Since(begin))})
	return nil
}

func (c *cluster) scale(ctx context.Context, name string, replicas int32) error {
	patch := fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas)
	_, err := c.client.AppsV1().Deployments(namespace).Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "scale")
	return err
}
