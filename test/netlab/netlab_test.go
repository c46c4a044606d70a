package netlab_test

import (
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/periplus/periplus/test/netlab"
)

func machine(t *testing.T) *netlab.Machine {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: makes namespaces")
	}
	m, err := netlab.New(netlab.Config{Name: "lab-a"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(m.Dir()); err == nil {
			t.Errorf("%s is still there", m.Dir())
		}
	})
	return m
}

func TestMachineIsApart(t *testing.T) {
	t.Parallel()
	m := machine(t)
	ctx := t.Context()
	name, err := m.Output(ctx, "hostname")
	if err != nil || name != "lab-a\n" {
		t.Errorf("host name %q, %v", name, err)
	}
	addresses, err := m.Output(ctx, "ip", "-4", "-o", "address")
	if err != nil || strings.Count(addresses, "\n") != 2 || !strings.Contains(addresses, netlab.Address+"/24") {
		t.Errorf("addresses %q, %v", addresses, err)
	}
	processes, err := m.Output(ctx, "sh", "-c", "echo /proc/[0-9]*")
	if err != nil || !strings.HasPrefix(processes, "/proc/1 ") || strings.Count(processes, "/proc/") > 4 {
		t.Errorf("processes %q, %v", processes, err)
	}
	// A server of this process is reached in there and not out here.
	l, err := m.Listen(ctx, "tcp", "127.0.0.1:5000")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, "hello\n")
			_ = c.Close()
		}
	}()
	defer l.Close()
	said, err := m.Output(ctx, "bash", "-c", "cat </dev/tcp/127.0.0.1/5000")
	if err != nil || said != "hello\n" {
		t.Errorf("inside: %q, %v", said, err)
	}
	if c, err := new(net.Dialer).DialContext(ctx, "tcp", l.Addr().String()); err == nil {
		c.Close()
		t.Error("the listener is reached from outside")
	}
}

func TestLeftovers(t *testing.T) {
	t.Parallel()
	m := machine(t)
	ctx := t.Context()
	found, err := m.Leftovers(ctx)
	if err != nil || len(found) != 0 {
		t.Fatalf("an untouched machine: %q, %v", found, err)
	}
	if err := os.MkdirAll(filepath.Join(m.RunDir(), "x"), 0o755); err != nil {
		t.Fatal(err)
	}
	_, err = m.Output(ctx, "sh", "-euc", `
		mount -t tmpfs tmpfs "$0"
		echo > "$0"/socket
		ip link add name peri0 type bridge
		ip address add 10.43.0.10/32 dev lo
		ip route add unreachable 10.42.0.0/16
		nft add table ip periplus
		sleep 1000 </dev/null >/dev/null 2>&1 &
	`, filepath.Join(m.RunDir(), "x"))
	if err != nil {
		t.Fatal(err)
	}
	found, err = m.Leftovers(ctx)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"process: sleep 1000", "mount: " + m.RunDir() + "/x", "interface: peri0", "address: 10.43.0.10/32",
		"route: unreachable 10.42.0.0/16", "rules: table ip periplus",
	}
	if !slices.Equal(found, want) {
		t.Errorf("found %q\nwant  %q", found, want)
	}
	// The file lies in the machine's own mount, which is not visible from here.
	if err := m.PowerOff(); err != nil {
		t.Fatal(err)
	}
	found, err = m.Leftovers(context.WithoutCancel(ctx))
	if err != nil || len(found) != 0 {
		t.Errorf("after a power cut: %q, %v", found, err)
	}
}
