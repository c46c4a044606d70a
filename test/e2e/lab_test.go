package e2e_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/periplus/periplus/test/netlab"
)

// lab makes several machines in one network without a way out; programs run on
// the first. $NAME_IP is each one's address, in capitals.
func (o *machines) lab(ts *testscript.TestScript, _ bool, names []string) {
	if len(names) < 2 {
		ts.Fatalf("usage: lab NAME NAME…")
	}
	first := ts.Value(nodeKey{}).(*node)
	first.others = map[string]*node{}
	ts.Defer(func() {
		if err := first.close(); err != nil {
			ts.Logf("close the lab: %v", err)
		}
	})
	var err error
	first.segment, err = netlab.NewSegment()
	ts.Check(err)
	address := func(i int) string { return fmt.Sprintf("198.51.100.%d", 10+i) }
	var hosts strings.Builder
	for i, name := range names {
		fmt.Fprintf(&hosts, "%s %s\n", address(i), name)
	}
	for i, name := range names {
		n := first
		if i > 0 {
			n = &node{}
			first.others[name] = n
		}
		ts.Check(n.boot(netlab.Config{Peri: o.peri, Name: name, Address: address(i), Segment: first.segment, Hosts: hosts.String()}))
		dir := filepath.Join(ts.Getenv("WORK"), ".on", name)
		ts.Check(os.MkdirAll(dir, 0o755)) //nolint:gosec // programs
		ts.Check(n.machine.WriteCommands(dir, inside...))
		ts.Setenv(strings.ToUpper(name)+"_IP", address(i))
		ts.Setenv(strings.ToUpper(name)+"_STATE", n.machine.StateDir())
	}
	for _, n := range first.others {
		n.daemons = map[string]*netlab.Peri{}
	}
	ts.Check(first.variables(ts))
}

// on runs a program on one machine of a lab.
func on(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: on NAME program…")
	}
	program(filepath.Join(ts.Getenv("WORK"), ".on", args[0], args[1]))(ts, neg, args[2:])
}

// named returns a machine of the lab.
func named(ts *testscript.TestScript, name string) *node {
	first := nodeOf(ts)
	if n := first.others[name]; n != nil {
		return n
	}
	if name != "" && first.machine.Name() != name {
		ts.Fatalf("there is no machine %q", name)
	}
	return first
}

// begin starts a process on a machine and waits for it; "end NAME" ends it.
func begin(ts *testscript.TestScript, neg bool, args []string, start func(*netlab.Machine, context.Context, ...string) (*netlab.Peri, error)) {
	if len(args) == 0 {
		ts.Fatalf("usage: server|agent NAME [flags]")
	}
	n := named(ts, args[0])
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	p, err := start(n.machine, ctx, args[1:]...)
	if p != nil {
		nodeOf(ts).daemons[args[0]] = p
		_, _ = io.WriteString(ts.Stderr(), p.Tail(60))
		if n == nodeOf(ts) {
			n.up = p
		}
	}
	expect(ts, neg, err)
}

func (o *machines) server(ts *testscript.TestScript, neg bool, args []string) {
	begin(ts, neg, args, (*netlab.Machine).Server)
}

func (o *machines) agent(ts *testscript.TestScript, neg bool, args []string) {
	begin(ts, neg, args, (*netlab.Machine).Agent)
}

func (o *machines) cut(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(named(ts, strings.Join(args, " ")).machine.Cut())
}

func (o *machines) heal(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(named(ts, strings.Join(args, " ")).machine.Heal())
}
