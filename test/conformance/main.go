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
	"strconv"
	"strings"
	"syscall"
)

// A plan is what the command line asks for.
type plan struct {
	peri, build, logs, docs string
	focus, skip             string
	agents, procs           int
}

func main() {
	var p plan
	flag.StringVar(&p.peri, "peri", "bin/peri", "the binary under test; kubectl is beside it")
	flag.StringVar(&p.build, "build", "build/conformance", "directory for upstream's programs")
	flag.StringVar(&p.logs, "logs", "build/conformance/logs", "directory for logs and reports")
	flag.StringVar(&p.docs, "docs", "", "page whose lines are renewed for the tests that ran")
	flag.StringVar(&p.focus, "focus", `\[Conformance\]`, "regular expression: tests to run")
	flag.StringVar(&p.skip, "skip", "", "regular expression: tests not to run")
	flag.IntVar(&p.agents, "agents", 1, "nodes besides the server's")
	flag.IntVar(&p.procs, "procs", 2, "tests at once")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := p.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
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
	say("build upstream's programs")
	if err := build(ctx, p.build); err != nil {
		return err
	}
	say("images")
	images, err := archive(ctx, p.build)
	if err != nil {
		return err
	}
	say(fmt.Sprintf("a server and %d agents", p.agents))
	c, err := start(ctx, p.peri, p.logs, images, p.agents)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	say("tests")
	report := filepath.Join(p.logs, "report.json")
	_ = os.Remove(report) // an old one
	ran := p.test(ctx, c, report)
	results, err := read(report)
	if err != nil {
		return errors.Join(ran, err)
	}
	if p.docs != "" {
		if err := renew(p.docs, results); err != nil {
			return err
		}
	}
	failed := summarise(os.Stdout, results)
	fmt.Println("logs:", p.logs)
	if failed > 0 {
		return fmt.Errorf("%d tests failed", failed)
	}
	return ran
}

// test runs the tests in the server's machine.
func (p *plan) test(ctx context.Context, c *cluster, report string) error {
	log, err := os.Create(filepath.Join(p.logs, "e2e.log"))
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := c.server.Command(ctx, filepath.Join(p.build, "ginkgo"),
		"--focus="+p.focus, "--skip="+p.skip, "--procs="+strconv.Itoa(p.procs), "--timeout=24h", "--no-color", "--keep-going",
		"--output-dir="+filepath.Dir(report), "--json-report="+filepath.Base(report),
		filepath.Join(p.build, "e2e.test"), "--",
		"--kubeconfig="+c.server.Kubeconfig(), "--provider=skeleton", "--disable-log-dump",
		"--kubectl-path="+filepath.Join(filepath.Dir(p.peri), "kubectl"))
	cmd.Stdout, cmd.Stderr = log, log
	err = cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil // the report says which failed
	}
	return err
}

func say(what string) { fmt.Println("==", strings.TrimSpace(what)) }
