package main

import (
	"context"
	"fmt"
	"time"
)

// measureIdle measures a cluster in which nothing runs and nobody asks.
func measureIdle(ctx context.Context, b *bench) error {
	c, err := b.open(ctx)
	if err != nil {
		return err
	}
	if err := wait(ctx, b.settle); err != nil {
		return err
	}
	return b.idleFor(ctx, c, "idle", b.idle, idlePeers{"< 120 MiB", "720 MiB", "< 0.5 %", "11 %"})
}

// idlePeers are the targets and upstream's figures for memory and CPU.
type idlePeers struct{ memory, upstreamMemory, cpu, upstreamCPU string }

// idleFor adds what is used over some time.
func (b *bench) idleFor(ctx context.Context, c *cluster, name string, d time.Duration, peers idlePeers) error {
	before, err := c.usage()
	if err != nil {
		return err
	}
	begin := time.Now()
	if err := wait(ctx, d); err != nil {
		return err
	}
	after, err := c.usage()
	if err != nil {
		return err
	}
	took := time.Since(begin)
	b.memory(name, after, peers.memory, peers.upstreamMemory)
	note := fmt.Sprintf("of a core, over %.0f s", took.Seconds())
	b.results.add(figure{Name: name + ", CPU", Unit: "%", Value: 100 * (after.CPU - before.CPU).Seconds() / took.Seconds(), Target: peers.cpu, Upstream: peers.upstreamCPU, Note: note})
	b.results.add(figure{Name: name + ", wake-ups", Unit: "/s", Value: float64(after.Wakeups-before.Wakeups) / took.Seconds()})
	written := float64(after.Written - before.Written)
	b.results.add(figure{Name: name + ", written", Unit: "KiB", Value: written / 1024, Note: fmt.Sprintf("%.1f MiB an hour", written/(1<<20)*time.Hour.Seconds()/took.Seconds())})
	return nil
}

// memory adds the resident memory of all processes of the node.
func (b *bench) memory(name string, u usage, target, upstream string) {
	b.results.add(figure{
		Name: name + ", memory", Unit: "MiB", Value: u.RSS, Target: target, Upstream: upstream,
		Note: fmt.Sprintf("resident; anonymous %.0f, proportional %.0f", u.Anon, u.PSS),
	})
}

// measureLoaded measures memory when the load is over.
func measureLoaded(ctx context.Context, b *bench) error {
	c, err := b.open(ctx)
	if err != nil {
		return err
	}
	u, err := c.usage()
	if err != nil {
		return err
	}
	b.memory("right after load", u, "", "")
	if err := wait(ctx, b.settle); err != nil {
		return err
	}
	return b.idleFor(ctx, c, "after load", b.settle, idlePeers{})
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
