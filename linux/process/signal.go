package process

import (
	"fmt"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Real-time signals as the C library numbers them: it keeps two for itself.
const (
	sigRTMin = 34
	sigRTMax = 64
)

// aliases are second names of signals.
var aliases = map[string]string{"SIGCLD": "SIGCHLD", "SIGIOT": "SIGABRT", "SIGPOLL": "SIGIO"}

// ParseSignal understands "SIGTERM", "term", "15", "SIGRTMIN+3" and "SIGRTMAX-1".
func ParseSignal(s string) (syscall.Signal, error) {
	if n, err := strconv.Atoi(s); err == nil {
		if n < 1 || n > sigRTMax {
			return 0, fmt.Errorf("signal %q: numbers go from 1 to %d", s, sigRTMax)
		}
		return syscall.Signal(n), nil
	}
	name := strings.ToUpper(s)
	if !strings.HasPrefix(name, "SIG") {
		name = "SIG" + name
	}
	if other, ok := aliases[name]; ok {
		name = other
	}
	if sig := unix.SignalNum(name); sig != 0 {
		return sig, nil
	}
	base, rest := 0, ""
	switch {
	case strings.HasPrefix(name, "SIGRTMIN"):
		base, rest = sigRTMin, name[len("SIGRTMIN"):]
	case strings.HasPrefix(name, "SIGRTMAX"):
		base, rest = sigRTMax, name[len("SIGRTMAX"):]
	default:
		return 0, fmt.Errorf("signal %q is unknown", s)
	}
	offset := 0
	if rest != "" {
		var err error
		if offset, err = strconv.Atoi(strings.TrimPrefix(rest, "+")); err != nil {
			return 0, fmt.Errorf("signal %q is unknown", s)
		}
	}
	if n := base + offset; n >= sigRTMin && n <= sigRTMax {
		return syscall.Signal(n), nil
	}
	return 0, fmt.Errorf("signal %q: real-time signals go from %d to %d", s, sigRTMin, sigRTMax)
}
