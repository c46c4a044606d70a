package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/periplus/periplus/test/images"
	"github.com/periplus/periplus/test/images/registry"
	"github.com/periplus/periplus/test/netlab"
)

func main() {
	peri := flag.String("peri", "bin/peri", "the binary to run")
	keep := flag.Bool("wait", false, "no shell: wait for SIGTERM")
	daemons := flag.Bool("daemons", false, "a process for each part instead of peri up")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *peri, *keep, *daemons, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "netlab:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, peri string, keep, daemons bool, flags []string) (err error) {
	peri, err = filepath.Abs(peri)
	if err != nil {
		return err
	}
	m, err := netlab.New(netlab.Config{Peri: peri, Flags: flags})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	l, err := m.Listen(ctx, "tcp", "127.0.0.1:5000")
	if err != nil {
		return err
	}
	r := registry.Serve(l)
	defer r.Close()
	busybox, err := images.Busybox()
	if err != nil {
		return err
	}
	nginx, err := images.Nginx(ctx)
	if err != nil {
		return err
	}
	if _, err := r.Push(ctx, "busybox:1", busybox); err != nil {
		return err
	}
	if _, err := r.Push(ctx, "nginx:1", nginx); err != nil {
		return err
	}
	bin := filepath.Join(m.Dir(), "bin")
	if err := os.Mkdir(bin, 0o755); err != nil { //nolint:gosec // programs
		return err
	}
	if err := m.WriteCommands(bin, "peri", "kubectl", "curl", "sh", "ip", "nft"); err != nil {
		return err
	}
	fmt.Println("commands in", bin, "run inside; kubeconfig", m.Kubeconfig())
	processes, err := start(ctx, m, daemons)
	if err != nil {
		fmt.Println(err)
	}
	for _, p := range processes {
		fmt.Println("ready; log in", p.Log())
	}
	if keep {
		<-ctx.Done()
		return nil
	}
	shell := m.Command(ctx, "sh")
	shell.Stdin, shell.Stdout, shell.Stderr = os.Stdin, os.Stdout, os.Stderr
	_ = shell.Run() // its exit code is the last command's
	var stopped error
	for _, p := range slices.Backward(processes) {
		stopped = errors.Join(stopped, p.Stop(context.WithoutCancel(ctx)))
	}
	downed := m.Down(context.WithoutCancel(ctx))
	left, leftErr := m.Leftovers(context.WithoutCancel(ctx))
	for _, f := range left {
		fmt.Println("left behind:", f)
	}
	return errors.Join(stopped, downed, leftErr)
}

// start runs the cluster in one process or in five.
func start(ctx context.Context, m *netlab.Machine, daemons bool) ([]*netlab.Peri, error) {
	if !daemons {
		p, err := m.Up(ctx)
		if err != nil {
			return nil, err
		}
		return []*netlab.Peri{p}, nil
	}
	var out []*netlab.Peri
	for _, name := range []string{"apiserver", "controller-manager", "scheduler", "kubelet", "proxy"} {
		p, err := m.Daemon(ctx, name)
		if err != nil {
			return out, err
		}
		out = append(out, p)
	}
	return out, nil
}
