package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/periplus/periplus/cri"
	"github.com/periplus/periplus/test/images/registry"
	"github.com/periplus/periplus/test/netlab"
)

// A plan is what the command line asks for.
type plan struct {
	peri, build, logs, docs string
	focus, skip             string
	oci                     string
}

// A pass is one run of the suite with flags of its own.
type pass struct {
	name, focus string
	args        []string
}

func main() {
	var p plan
	flag.StringVar(&p.peri, "peri", "bin/peri", "the binary under test")
	flag.StringVar(&p.build, "build", "build/critest", "directory for the suite's program")
	flag.StringVar(&p.logs, "logs", "build/critest/logs", "directory for logs and reports")
	flag.StringVar(&p.docs, "docs", "", "page that is renewed, if all tests ran")
	flag.StringVar(&p.focus, "focus", "", "regular expression: tests to run")
	flag.StringVar(&p.skip, "skip", "", "regular expression: tests not to run")
	flag.StringVar(&p.oci, "oci-runtime", "", "crun or runc; default: peri's choice")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := p.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "critest:", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop has been called
	}
}

func (p *plan) run(ctx context.Context) (err error) {
	if os.Geteuid() != 0 {
		return errors.New("it needs root, to make namespaces and containers")
	}
	for _, path := range []*string{&p.peri, &p.build, &p.logs} {
		if *path, err = filepath.Abs(*path); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(p.logs, 0o755); err != nil {
		return err
	}
	say("a machine")
	m, err := netlab.New(netlab.Config{Peri: p.peri, Name: "critest"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	say("images")
	l, err := m.Listen(ctx, "tcp", "127.0.0.1:5000")
	if err != nil {
		return err
	}
	r := registry.Serve(l)
	defer func() { err = errors.Join(err, r.Close()) }()
	digest, err := push(ctx, r)
	if err != nil {
		return err
	}
	say("build the suite")
	program, version, err := build(ctx, p.build, digest)
	if err != nil {
		return err
	}
	say("the runtime")
	flags := []string{"--registry-mirror", "*=http://" + r.Address()}
	if p.oci != "" {
		flags = append(flags, "--oci-runtime", p.oci)
	}
	runtime, err := m.Daemon(ctx, "containers", flags...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, keep(runtime.Log(), filepath.Join(p.logs, "peri.log"))) }()
	if err := configure(ctx, m); err != nil {
		return err
	}
	var all []result
	for _, s := range []pass{
		{name: "critest", focus: p.focus},
		{name: "websocket", focus: "Streaming", args: []string{"-websocket-exec", "-websocket-attach", "-websocket-portforward"}},
	} {
		if s.name != "critest" && p.focus != "" {
			continue
		}
		say("tests: " + s.name)
		results, err := p.pass(ctx, m, program, s)
		if err != nil {
			return err
		}
		all = append(all, results...)
	}
	failed := summarise(os.Stdout, all)
	if p.docs != "" && p.focus == "" && p.skip == "" {
		if err := os.WriteFile(p.docs, render(version, all), 0o644); err != nil { //nolint:gosec // a page of the documentation
			return err
		}
	}
	fmt.Println("logs:", p.logs)
	if failed > 0 {
		return fmt.Errorf("%d tests failed", failed)
	}
	return nil
}

// configure tells the runtime what a kubelet would: the node's range of addresses.
func configure(ctx context.Context, m *netlab.Machine) (err error) {
	runtime, _, conn, err := cri.Dial(ctx, filepath.Join(m.RunDir(), "cri.sock"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	_, err = runtime.UpdateRuntimeConfig(ctx, &runtimeapi.UpdateRuntimeConfigRequest{
		RuntimeConfig: &runtimeapi.RuntimeConfig{NetworkConfig: &runtimeapi.NetworkConfig{PodCidr: "10.42.0.0/24"}},
	})
	return err
}

// pass runs the suite in the machine.
func (p *plan) pass(ctx context.Context, m *netlab.Machine, program string, s pass) ([]result, error) {
	log, err := os.Create(filepath.Join(p.logs, s.name+".log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	report := filepath.Join(p.logs, s.name+".json")
	_ = os.Remove(report) // an old one
	args := append([]string{
		"-test.timeout=60m", "-ginkgo.no-color", "-ginkgo.json-report=" + report, "-ginkgo.focus=" + s.focus,
		"-runtime-endpoint=unix://" + filepath.Join(m.RunDir(), "cri.sock"),
	}, s.args...)
	if p.skip != "" {
		args = append(args, "-ginkgo.skip="+p.skip)
	}
	cmd := m.Command(ctx, program, args...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Run(); err != nil {
		var exit *exec.ExitError
		if _, there := os.Stat(report); !errors.As(err, &exit) || there != nil {
			return nil, fmt.Errorf("%s: %w, see %s", s.name, err, log.Name())
		} // else the report says which failed
	}
	return read(report, s.name)
}

// keep copies a log that is going to be removed with the machine.
func keep(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o644) //nolint:gosec // a log
}

func say(what string) { fmt.Println("==", strings.TrimSpace(what)) }
