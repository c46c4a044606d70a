package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"time"
)

// measureIdle measures a cluster in which nothing runs and nobody asks.
//
// On a virtual machine most of what an idle program is charged is the machine's
// waking up. Two more figures tell how much: what an empty program is charged that
// only wakes up, and what peri is while the processors are kept awake.
func measureIdle(ctx context.Context, b *bench) (err error) {
	c, err := b.open(ctx)
	if err != nil {
		return err
	}
	if err := wait(ctx, b.settle); err != nil {
		return err
	}
	empty, stop, err := background(ctx, os.Args[0], tickFlag)
	if err != nil {
		return err
	}
	err = b.idleFor(ctx, c, "idle", b.idle, idlePeers{"< 120 MiB", "720 MiB", "< 0.5 %", "11 %"})
	u, e := measure([]int{empty})
	stop()
	if err := errors.Join(err, e); err != nil {
		return err
	}
	b.results.add(figure{
		Name: "an empty program, CPU", Unit: "%", Value: 100 * u.CPU.Seconds() / b.idle.Seconds(),
		Note: fmt.Sprintf("wakes up %d times a second, for comparison", time.Second/tickEvery),
	})
	for range runtime.NumCPU() {
		_, stop, err := background(ctx, "nice", "-n", "19", "sh", "-c", "while :; do :; done")
		if err != nil {
			return err
		}
		defer stop()
	}
	before, err := c.usage()
	if err != nil {
		return err
	}
	awake := b.idle / 2
	if err := wait(ctx, awake); err != nil {
		return err
	}
	after, err := c.usage()
	if err != nil {
		return err
	}
	b.results.add(figure{
		Name: "idle, CPU, processors awake", Unit: "%", Value: 100 * (after.CPU - before.CPU).Seconds() / awake.Seconds(), Target: "< 0.5 %",
		Note: "while others of low priority use them",
	})
	return nil
}

const (
	// tickFlag makes this program the empty one that only wakes up.
	tickFlag  = "-tick"
	tickEvery = 100 * time.Millisecond
)

// tickForever is the empty program.
func tickForever() {
	for t := time.NewTicker(tickEvery); ; {
		<-t.C
	}
}

// background starts a program; stop ends it.
func background(ctx context.Context, name string, args ...string) (pid int, stop func(), err error) {
	cmd := exec.CommandContext(ctx, name, args...) //nolint:gosec // ours
	if err := cmd.Start(); err != nil {
		return 0, nil, err
	}
	return cmd.Process.Pid, func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	}, nil
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
