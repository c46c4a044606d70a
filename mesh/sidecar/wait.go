package sidecar

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"syscall"
	"time"

	"github.com/periplus/periplus/mesh"
)

// waiter is where one who waits for the proxy listens: an abstract socket, so that
// no file system has to be writable.
const waiter = "@periplus-sidecar-wait"

// waitLimit is shorter than what the probe that waits is allowed.
const waitLimit = 8 * time.Second

// Wait is the startup probe of a sidecar: it returns nil when the proxy is ready. It
// may be started before the proxy listens; then the proxy tells it.
func Wait(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, waitLimit)
	defer cancel()
	var config net.ListenConfig
	l, err := config.Listen(ctx, "unix", waiter)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	defer l.Close()
	// 1. The proxy listens before it looks for the waiter, the waiter before it looks
	//    for the proxy: one of them finds the other.
	for {
		err := ready(ctx)
		if !errors.Is(err, syscall.ECONNREFUSED) {
			return err
		}
		c, err := l.Accept()
		if err != nil {
			return fmt.Errorf("the proxy has not begun to listen: %w", err)
		}
		_ = c.Close()
	}
}

func ready(ctx context.Context) error {
	for {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1:"+strconv.Itoa(mesh.HealthPort)+"/healthz/ready", nil)
		if err != nil {
			return err
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			return err
		}
		_ = resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			return nil
		}
		// It has held the request for a while already.
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// tellWaiter wakes one who waits for the proxy to listen.
func tellWaiter(ctx context.Context) {
	var d net.Dialer
	if c, err := d.DialContext(ctx, "unix", waiter); err == nil {
		_ = c.Close()
	}
}
