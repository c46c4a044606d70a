package tour

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// patience bounds how long a state is waited for: the machine may be busy.
const patience = 90 * time.Second

// typed shows a command line, runs it in a machine's shell and shows what it printed,
// which it returns. Manifests are in the current directory.
func (t *tour) typed(ctx context.Context, machine, line string) (string, error) {
	t.prompt(machine, line)
	out, err := t.shell(ctx, machine, line)
	t.output(out)
	return out, err
}

// until runs a command line until what it prints is accepted, whatever its exit code,
// and shows that. Each run is an exchange with the cluster, which says nothing of its
// own accord when, for instance, all sidecars have a new rule.
func (t *tour) until(ctx context.Context, machine, line string, accept func(out string) error) (string, error) {
	t.prompt(machine, line)
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		out, _ := t.shell(limited, machine, line)
		err := accept(out)
		if err == nil || limited.Err() != nil {
			t.output(out)
			return out, err
		}
	}
}

// shell runs a command line in a machine and returns all that it printed.
func (t *tour) shell(ctx context.Context, machine, line string) (string, error) {
	m := t.machines[machine]
	cmd := m.Command(ctx, "sh", "-c", `cd "$0" && PATH="$1:$PATH" && export PATH && eval "$2"`, filepath.Join(m.Dir(), "home"), filepath.Join(m.Dir(), "bin"), line)
	cmd.WaitDelay = time.Second // a grandchild may hold the pipe
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = fmt.Errorf("%s: %w\n%s", line, err, out.String())
	}
	return out.String(), err
}

// all types lines one after the other, on the server.
func (t *tour) all(ctx context.Context, lines ...string) error {
	for _, line := range lines {
		if _, err := t.typed(ctx, server, line); err != nil {
			return err
		}
	}
	return nil
}

func (t *tour) print(format string, args ...any) { fmt.Fprintf(t.Out, format, args...) }

func (t *tour) heading(number int, title string) {
	gap := strings.Repeat(" ", max(2, 92-len([]rune(title))))
	t.print("\n%s%s%s\n", t.bold(fmt.Sprintf("%2d  %s", number, title)), gap, t.dim(fmt.Sprintf("%5.1f s", time.Since(t.started).Seconds())))
}

func (t *tour) prompt(machine, line string) {
	t.print("    %s %s\n", t.dim(machine+"$"), t.bold(line))
}

func (t *tour) output(out string) {
	if out = strings.TrimRight(out, "\n"); out != "" {
		t.print("%s\n", indent(out))
	}
}

// proved is what a stage has shown.
func (t *tour) proved(format string, args ...any) {
	t.print("    %s %s\n", t.green("✓"), fmt.Sprintf(format, args...))
}

func indent(s string) string {
	return "      " + strings.ReplaceAll(strings.TrimRight(s, "\n"), "\n", "\n      ")
}

func (t *tour) paint(code, s string) string {
	if !t.Color {
		return s
	}
	return "\033[" + code + "m" + s + "\033[0m"
}

func (t *tour) bold(s string) string  { return t.paint("1", s) }
func (t *tour) dim(s string) string   { return t.paint("2", s) }
func (t *tour) red(s string) string   { return t.paint("1;31", s) }
func (t *tour) green(s string) string { return t.paint("32", s) }
