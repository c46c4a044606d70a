package tour

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/periplus/periplus/test/netlab"
)

// cluster begins with a server; two agents join it.
func (t *tour) cluster(ctx context.Context) error {
	if err := t.boot(ctx); err != nil {
		return err
	}
	t.print("      %s, %s and %s will be nodes; %s stands beside the cluster and has the image registry\n", server, one, two, outside)
	begin := time.Now()
	if err := t.start(ctx, server, "peri server --registry-mirror docker.io=http://"+addresses[outside]+":5000", (*netlab.Machine).Server); err != nil {
		return err
	}
	join, err := t.typed(ctx, server, "peri token create --print-join-command")
	if err != nil {
		return err
	}
	words := strings.Fields(join)
	if len(words) < 3 || words[1] != "agent" {
		return fmt.Errorf("not a command to join with: %q", join)
	}
	g, inner := errgroup.WithContext(ctx)
	for _, name := range []string{one, two} {
		t.prompt(name, "peri agent --server … --token …")
		g.Go(func() error { return t.begin(inner, name, (*netlab.Machine).Agent, words[2:]...) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	if err := t.all(ctx, "kubectl wait node --all --for=condition=Ready --timeout=90s", "kubectl get nodes -o wide"); err != nil {
		return err
	}
	t.proved("3 nodes are Ready, %.1f s after the first command", time.Since(begin).Seconds())
	return nil
}

// start shows the command and its progress.
func (t *tour) start(ctx context.Context, machine, line string, how func(*netlab.Machine, context.Context, ...string) (*netlab.Peri, error)) error {
	t.prompt(machine, line)
	if err := t.begin(ctx, machine, how); err != nil {
		return err
	}
	t.output(parts(t.running[machine].Progress()))
	return nil
}

// parts names what a server has reported as ready, and when the last was.
func parts(progress string) string {
	var names []string
	last := ""
	for line := range strings.Lines(progress) {
		if f := strings.Fields(line); len(f) == 3 { // ✓ etcd 0.12s
			names, last = append(names, f[1]), f[2]
		}
	}
	return strings.Join(names, " · ") + ": ready after " + last
}

func (t *tour) begin(ctx context.Context, machine string, how func(*netlab.Machine, context.Context, ...string) (*netlab.Peri, error), flags ...string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	p, err := how(t.machines[machine], ctx, flags...)
	if p != nil {
		t.mu.Lock()
		t.running[machine] = p
		t.mu.Unlock()
	}
	return err
}

// namespace makes the shop's namespace: the mesh begins with it.
func (t *tour) namespace(ctx context.Context) error {
	if err := t.all(ctx, "kubectl apply -f namespace.yaml", "kubectl config set-context --current --namespace=shop"); err != nil {
		return err
	}
	kinds, err := t.typed(ctx, server, "kubectl get crd -o name | grep istio.io")
	if err != nil {
		return err
	}
	t.proved("the mesh is on when the command returns: %d of Istio's kinds, and a sidecar for each pod from now on", strings.Count(kinds, "\n"))
	return nil
}

// leave ends the cluster and looks for what it has left behind.
func (t *tour) leave(ctx context.Context) error {
	// The server last: agents tell it that they go.
	for _, names := range [][]string{{one, two}, {server}} {
		g, inner := errgroup.WithContext(ctx)
		for _, name := range names {
			t.prompt(name, "peri down --purge")
			g.Go(func() error { return t.down(inner, name) })
		}
		if err := g.Wait(); err != nil {
			return err
		}
	}
	t.proved("no process, mount, interface, rule, cgroup or file is left on the three nodes")
	return nil
}

func (t *tour) down(ctx context.Context, name string) error {
	m := t.machines[name]
	if err := t.running[name].Stop(ctx); err != nil {
		return err
	}
	if err := m.Down(ctx); err != nil {
		return err
	}
	left, err := m.Leftovers(ctx)
	if err != nil {
		return err
	}
	if len(left) > 0 {
		return errors.New("left behind on " + name + ":\n  " + strings.Join(left, "\n  "))
	}
	return nil
}
