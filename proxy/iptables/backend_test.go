package iptables_test

import (
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/periplus/periplus/linux/netnstest"
	"github.com/periplus/periplus/proxy"
	"github.com/periplus/periplus/proxy/iptables"
	"github.com/periplus/periplus/proxy/proxytest"
)

func open(t testing.TB) proxy.Backend {
	t.Helper()
	b, err := iptables.New(proxytest.Config())
	if errors.Is(err, proxy.ErrMissing) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestSuite(t *testing.T) { proxytest.Run(t, open) }

// TestCleanupLeavesNothing leaves the tables as they were, those of others too.
func TestCleanupLeavesNothing(t *testing.T) {
	t.Parallel()
	netnstest.Run(t, func() {
		b := open(t)
		defer b.Close()
		command(t, "iptables", "-t", "nat", "-A", "PREROUTING", "-p", "tcp", "--dport", "1", "-j", "ACCEPT")
		command(t, "iptables", "-t", "filter", "-N", "OTHERS")
		before := rules(t)
		if err := b.Cleanup(); err != nil {
			t.Fatal(err)
		}
		if err := b.Replace(t.Context(), []*proxy.Port{proxytest.Example()}); err != nil {
			t.Fatal(err)
		}
		if now := rules(t); !strings.Contains(now, "KUBE-SEP-") {
			t.Fatalf("no rules:\n%s", now)
		}
		if err := b.Cleanup(); err != nil {
			t.Fatal(err)
		}
		if after := rules(t); after != before {
			t.Errorf("before:\n%s\nafter:\n%s", before, after)
		}
	})
}

// rules are the tables without counters and comments.
func rules(t testing.TB) string {
	t.Helper()
	var out strings.Builder
	for _, table := range []string{"nat", "filter"} {
		for line := range strings.Lines(command(t, "iptables-save", "-t", table)) {
			if strings.HasPrefix(line, ":") || strings.HasPrefix(line, "-A") {
				name, _, _ := strings.Cut(line, " [")
				out.WriteString(strings.TrimSpace(name) + "\n")
			}
		}
	}
	return out.String()
}

func command(t testing.TB, name string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
	return string(out)
}
