package e2e_test

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/periplus/periplus/test/netlab"
)

// watchTimeout bounds how long an awaited line may take.
const watchTimeout = 90 * time.Second

type command = func(ts *testscript.TestScript, neg bool, args []string)

// commands are those that scripts have besides testscript's own.
func commands(peri string) map[string]command {
	own := &machines{peri: peri}
	return map[string]command{
		"kubectl":  program("kubectl"),
		"peri":     program("peri"),
		"curl":     program("curl"),
		"helm":     program("helm"),
		"sh":       program("sh"),
		"setenv":   setenv,
		"build":    build,
		"watch":    watch,
		"answer":   answer,
		"machine":  own.machine,
		"up":       own.up,
		"daemon":   own.daemon,
		"end":      own.end,
		"crash":    own.crash,
		"poweroff": own.poweroff,
		"down":     own.down,
		"archive":  archive,
		"lab":      own.lab,
		"server":   own.server,
		"agent":    own.agent,
		"on":       on,
		"cut":      own.cut,
		"heal":     own.heal,
	}
}

// program runs a program and keeps what it prints for stdout and stderr.
func program(name string) command {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		expect(ts, neg, ts.Exec(name, args...))
	}
}

// setenv puts what a program prints into a variable.
func setenv(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: setenv NAME command…")
	}
	ts.Check(ts.Exec(args[1], args[2:]...))
	value := strings.TrimSpace(ts.ReadFile("stdout"))
	if value == "" {
		ts.Fatalf("it printed nothing")
	}
	ts.Setenv(args[0], value)
}

// build compiles a program of this module into the script's directory.
func build(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: build NAME FOLDER")
	}
	cmd := exec.CommandContext(context.Background(), "go", "build", "-ldflags", "-s -w", "-o", ts.MkAbs(args[0]), "github.com/periplus/periplus/"+args[1])
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		ts.Fatalf("%v\n%s", err, out)
	}
}

func expect(ts *testscript.TestScript, neg bool, err error) {
	if err != nil && !neg {
		ts.Fatalf("%v", err)
	}
	if err == nil && neg {
		ts.Fatalf("it succeeded, which it should not")
	}
}

// watch runs a program until a line of its output matches.
func watch(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: watch REGEXP command…")
	}
	want, err := regexp.Compile(args[0])
	ts.Check(err)
	ctx, cancel := context.WithTimeout(context.Background(), watchTimeout)
	defer cancel()
	path := ts.Getenv("WORK") + "/.bin/" + args[1]
	cmd := exec.CommandContext(ctx, path, args[2:]...)
	cmd.Env = passed(ts)
	cmd.WaitDelay = time.Second // a grandchild may hold the pipe
	r, w := io.Pipe()
	cmd.Stdout, cmd.Stderr = w, w
	ts.Check(cmd.Start())
	ended := make(chan error, 1)
	go func() {
		ended <- cmd.Wait()
		_ = w.Close()
	}()
	var seen []string
	found := false
	for lines := bufio.NewScanner(r); lines.Scan(); {
		seen = append(seen, lines.Text())
		if want.MatchString(lines.Text()) {
			found = true
			break
		}
	}
	cancel()
	go func() { _, _ = io.Copy(io.Discard, r) }()
	<-ended //nolint:errcheck // it was ended from here
	_, _ = io.WriteString(ts.Stdout(), strings.Join(seen, "\n")+"\n")
	if !found {
		ts.Fatalf("no line matches %q:\n%s", args[0], strings.Join(seen, "\n"))
	}
}

// passed is the part of the script's environment that programs get.
func passed(ts *testscript.TestScript) []string {
	var env []string
	for _, name := range []string{"PATH", "HOME", "KUBECONFIG", "TMPDIR"} {
		env = append(env, name+"="+ts.Getenv(name))
	}
	return env
}

// answer asks a URL until it answers as expected. Nothing reports when a Service's
// first packet gets through, so curl tries again each second.
func answer(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: answer REGEXP [curl's flags] URL")
	}
	want, err := regexp.Compile(args[0])
	ts.Check(err)
	ts.Check(ts.Exec("curl", append([]string{"-sS", "--max-time", "5", "--retry", "60", "--retry-all-errors", "--retry-delay", "1", "--retry-max-time", "60", "--fail"}, args[1:]...)...))
	if out := ts.ReadFile("stdout"); !want.MatchString(out) {
		ts.Fatalf("the answer does not match %q", args[0])
	}
}

// machines are the commands of scripts that have a machine for themselves.
type machines struct{ peri string }

// nodeKey is where Setup leaves such a script's node.
type nodeKey struct{}

func nodeOf(ts *testscript.TestScript) *node {
	n, _ := ts.Value(nodeKey{}).(*node)
	if n == nil || n.machine == nil {
		ts.Fatalf("this script has no machine yet: begin with the line \"machine\"")
	}
	return n
}

// machine makes it.
func (o *machines) machine(ts *testscript.TestScript, _ bool, args []string) {
	n := ts.Value(nodeKey{}).(*node)
	ts.Defer(func() {
		if err := n.close(); err != nil {
			ts.Logf("close the machine: %v", err)
		}
	})
	ts.Check(n.open(o.peri, args))
	ts.Check(n.variables(ts))
}

// up starts peri; its progress, or what it printed before it failed, is stderr.
func (o *machines) up(ts *testscript.TestScript, neg bool, args []string) {
	n := nodeOf(ts)
	err := n.start(args...)
	if n.up != nil {
		_, _ = io.WriteString(ts.Stderr(), n.up.Tail(60))
	}
	expect(ts, neg, err)
}

// daemon starts one part alone and waits for its report.
func (o *machines) daemon(ts *testscript.TestScript, _ bool, args []string) {
	n := nodeOf(ts)
	if len(args) == 0 {
		ts.Fatalf("usage: daemon NAME [flags]")
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	p, err := n.machine.Daemon(ctx, args[0], args[1:]...)
	if p != nil {
		n.daemons[args[0]] = p
	}
	ts.Check(err)
}

func (n *node) process(ts *testscript.TestScript, args []string) *netlab.Peri {
	if len(args) != 1 {
		ts.Fatalf("usage: end|crash NAME, where NAME is up or a daemon")
	}
	p := n.daemons[args[0]]
	if args[0] == "up" {
		p = n.up
	}
	if p == nil {
		ts.Fatalf("%s was not started", args[0])
	}
	return p
}

func (o *machines) end(ts *testscript.TestScript, neg bool, args []string) {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	expect(ts, neg, nodeOf(ts).process(ts, args).Stop(ctx))
}

func (o *machines) crash(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(nodeOf(ts).process(ts, args).Kill())
}

// poweroff ends everything on a machine; its files stay, but for the run directory,
// which is in memory on a real one.
func (o *machines) poweroff(ts *testscript.TestScript, _ bool, args []string) {
	n := named(ts, strings.Join(args, " "))
	_ = n.images.Close() // its listener goes with the network namespace
	ts.Check(n.machine.PowerOff())
	ts.Check(os.RemoveAll(n.machine.RunDir()))
	ts.Check(n.serveImages())
	// The commands lead into the machine by its first process, which is another now.
	if n == nodeOf(ts) {
		ts.Check(n.machine.WriteCommands(filepath.Join(ts.Getenv("WORK"), ".bin"), inside...))
	}
	if n.machine.Name() != nodeName || len(nodeOf(ts).others) > 0 {
		ts.Check(n.machine.WriteCommands(filepath.Join(ts.Getenv("WORK"), ".on", n.machine.Name()), inside...))
	}
}

func (o *machines) down(ts *testscript.TestScript, neg bool, _ []string) {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	expect(ts, neg, nodeOf(ts).down(ctx))
}
