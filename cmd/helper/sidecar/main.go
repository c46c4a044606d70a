package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/periplus/periplus/mesh/capture"
	"github.com/periplus/periplus/mesh/sidecar"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "sidecar:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("usage: sidecar proxy|init|wait [flags]")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	switch args[0] {
	case "proxy":
		return sidecar.Main(ctx, args[1:], os.Stdout)
	case "wait":
		return sidecar.Wait(ctx)
	case "init":
		return capture.Main(args[1:], os.Stdout)
	}
	return fmt.Errorf("%q is no command: proxy, init or wait", args[0])
}
