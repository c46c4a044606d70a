package iptables

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"github.com/periplus/periplus/linux/netns"
)

// ErrMissing is returned when the programs are not installed.
var ErrMissing = errors.New("iptables is not installed (on Debian: apt-get install iptables)")

// A Tool runs the programs in the network namespace that it was opened in.
type Tool struct {
	ns            *netns.NS
	save, restore string
}

// Open finds the programs; it works in the namespace of the calling thread.
func Open(ipv6 bool) (*Tool, error) {
	name := "iptables"
	if ipv6 {
		name = "ip6tables"
	}
	save, err := exec.LookPath(name + "-save")
	if err != nil {
		return nil, fmt.Errorf("%s-save: %w", name, ErrMissing)
	}
	restore, err := exec.LookPath(name + "-restore")
	if err != nil {
		return nil, fmt.Errorf("%s-restore: %w", name, ErrMissing)
	}
	ns, err := netns.Current()
	if err != nil {
		return nil, err
	}
	return &Tool{ns: ns, save: save, restore: restore}, nil
}

// Close leaves the namespace.
func (t *Tool) Close() error { return t.ns.Close() }

// Save returns a table in the programs' format.
func (t *Tool) Save(ctx context.Context, table string) ([]byte, error) {
	return t.run(ctx, nil, t.save, "-t", table)
}

// Restore carries out text in the programs' format. Each table is one transaction.
// Chains that the text declares are emptied first, others stay as they are.
func (t *Tool) Restore(ctx context.Context, text []byte) error {
	_, err := t.run(ctx, text, t.restore, "--noflush", "--wait", "5")
	return err
}

func (t *Tool) run(ctx context.Context, in []byte, program string, args ...string) ([]byte, error) {
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(in), &out, &errs
	if err := t.ns.Do(cmd.Run); err != nil {
		return nil, fmt.Errorf("%s: %w: %s", program, err, strings.TrimSpace(errs.String()))
	}
	return out.Bytes(), nil
}
