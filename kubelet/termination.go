package kubelet

import (
	"bytes"
	"io"
	"os"

	corev1 "k8s.io/api/core/v1"
)

// Limits of termination messages, as upstream has them.
const (
	maxMessage      = 4096 // bytes read from the message file
	maxMessageLog   = 2048 // bytes taken from the log instead
	maxMessageLines = 80   // lines likewise
)

// terminationMessage is what an exited container left as its last words: the
// file it wrote, else the end of its log if the policy says so and it failed,
// else the runtime's own message.
func terminationMessage(c *container) string {
	if c.hostPath != "" {
		if b, err := readHead(c.hostPath, maxMessage); err == nil && len(b) > 0 {
			return string(b)
		}
	}
	if c.messagePolicy == string(corev1.TerminationMessageFallbackToLogsOnError) && (c.exitCode != 0 || c.reason == "OOMKilled") {
		if s := logTail(c.logPath); s != "" {
			return s
		}
	}
	return c.message
}

func readHead(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, limit))
}

// logTail returns the end of a CRI log file ("<time> <stream> <P|F> <content>"
// a line) as plain text.
func logTail(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	// 80 lines of prefixes and 2048 bytes of content fit in 8 KiB.
	const window = 8 << 10
	if end, err := f.Seek(0, io.SeekEnd); err != nil {
		return ""
	} else if _, err := f.Seek(max(0, end-window), io.SeekStart); err != nil {
		return ""
	}
	raw, err := io.ReadAll(io.LimitReader(f, window))
	if err != nil {
		return ""
	}
	lines := bytes.Split(bytes.TrimRight(raw, "\n"), []byte("\n"))
	if len(lines) > maxMessageLines {
		lines = lines[len(lines)-maxMessageLines:]
	}
	var out []byte
	for _, line := range lines {
		parts := bytes.SplitN(line, []byte(" "), 4)
		if len(parts) < 4 {
			continue
		}
		out = append(out, parts[3]...)
		if len(parts[2]) > 0 && parts[2][0] == 'F' {
			out = append(out, '\n')
		}
	}
	if len(out) > maxMessageLog {
		out = out[len(out)-maxMessageLog:]
	}
	return string(out)
}
