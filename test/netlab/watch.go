package netlab

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
	"time"
)

// Watch runs a command inside until a line of its output matches, ends it and
// returns the line. It is an error when the command ends before that.
func (m *Machine) Watch(ctx context.Context, match func(line string) bool, command ...string) (string, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := m.Command(ctx, command[0], command[1:]...)
	cmd.WaitDelay = time.Second // a grandchild may hold the pipe
	r, w := io.Pipe()
	cmd.Stdout, cmd.Stderr = w, w
	if err := cmd.Start(); err != nil {
		return "", err
	}
	ended := make(chan error, 1)
	go func() {
		err := cmd.Wait()
		_ = w.Close()
		ended <- err
	}()
	var seen []string
	for lines := bufio.NewScanner(r); lines.Scan(); {
		if match(lines.Text()) {
			cancel()
			_ = r.Close()
			<-ended //nolint:errcheck // it was ended from here
			return lines.Text(), nil
		}
		seen = append(seen, lines.Text())
	}
	err := <-ended
	return "", fmt.Errorf("%s ended without the line that was waited for: %w\n%s", strings.Join(command, " "), err, strings.Join(seen, "\n"))
}
