package monitor

import (
	"os"
	"os/signal"
	"syscall"
)

// pause is the first process of a PID namespace that several containers share:
// it collects their orphans and ends on SIGTERM or SIGINT.
func pause() error {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGCHLD)
	for sig := range signals {
		if sig != syscall.SIGCHLD {
			return nil
		}
		for {
			pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
			if err != syscall.EINTR && pid <= 0 {
				break
			}
		}
	}
	return nil
}
