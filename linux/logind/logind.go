package logind

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/godbus/dbus/v5"
)

const (
	service = "org.freedesktop.login1"
	object  = "/org/freedesktop/login1"
	manager = "org.freedesktop.login1.Manager"

	overrideDir  = "/etc/systemd/logind.conf.d"
	overrideFile = "99-kubelet.conf"
)

// Conn is a connection to the login manager.
type Conn struct{ bus *dbus.Conn }

// Connect connects to the system's D-Bus.
func Connect() (*Conn, error) {
	bus, err := dbus.ConnectSystemBus()
	if err != nil {
		return nil, fmt.Errorf("system D-Bus: %w", err)
	}
	return &Conn{bus}, nil
}

// Close ends the connection, and with it what Shutdowns tells.
func (c *Conn) Close() error { return c.bus.Close() }

// Delay is how long a shutdown waits for locks at most.
func (c *Conn) Delay() (time.Duration, error) {
	v, err := c.bus.Object(service, object).GetProperty(manager + ".InhibitDelayMaxUSec")
	if err != nil {
		return 0, fmt.Errorf("logind: InhibitDelayMaxUSec: %w", err)
	}
	micros, ok := v.Value().(uint64)
	if !ok {
		return 0, errors.New("logind: InhibitDelayMaxUSec is not a number")
	}
	return time.Duration(micros) * time.Microsecond, nil //nolint:gosec // smaller than 2^63
}

// Raise asks logind to wait longer, by a file of its configuration that stays.
func (c *Conn) Raise(ctx context.Context, delay time.Duration) error {
	if err := os.MkdirAll(overrideDir, 0o755); err != nil { //nolint:gosec // as systemd's own
		return fmt.Errorf("logind: %w", err)
	}
	text := fmt.Sprintf("# Kubelet logind override\n[Login]\nInhibitDelayMaxSec=%.0f\n", delay.Seconds())
	if err := os.WriteFile(filepath.Join(overrideDir, overrideFile), []byte(text), 0o644); err != nil { //nolint:gosec // as systemd's own
		return fmt.Errorf("logind: %w", err)
	}
	call := c.bus.Object("org.freedesktop.systemd1", "/org/freedesktop/systemd1").
		CallWithContext(ctx, "org.freedesktop.systemd1.Manager.KillUnit", 0, "systemd-logind.service", "all", int32(1))
	if call.Err != nil {
		return fmt.Errorf("logind: read its configuration again: %w", call.Err)
	}
	return nil
}

// Inhibit takes a lock that a shutdown waits for, until it is closed.
func (c *Conn) Inhibit(ctx context.Context) (*os.File, error) {
	call := c.bus.Object(service, object).CallWithContext(ctx, manager+".Inhibit", 0, "shutdown", "kubelet", "Kubelet needs time to handle node shutdown", "delay")
	var fd dbus.UnixFD
	if err := call.Store(&fd); err != nil {
		return nil, fmt.Errorf("logind: inhibit shutdown: %w", err)
	}
	return os.NewFile(uintptr(fd), "shutdown lock"), nil
}

// Shutdowns calls f with true when a shutdown begins and with false when one is
// called off, until ctx ends or the connection breaks, which is an error.
func (c *Conn) Shutdowns(ctx context.Context, f func(bool)) error {
	err := c.bus.AddMatchSignalContext(ctx, dbus.WithMatchInterface(manager), dbus.WithMatchMember("PrepareForShutdown"), dbus.WithMatchObjectPath(object))
	if err != nil {
		return fmt.Errorf("logind: PrepareForShutdown: %w", err)
	}
	signals := make(chan *dbus.Signal, 4)
	c.bus.Signal(signals)
	defer c.bus.RemoveSignal(signals)
	for {
		select {
		case <-ctx.Done():
			return nil
		case s, ok := <-signals:
			if !ok {
				return errors.New("logind: the connection to D-Bus broke")
			}
			if len(s.Body) == 1 {
				if active, ok := s.Body[0].(bool); ok {
					f(active)
				}
			}
		}
	}
}
