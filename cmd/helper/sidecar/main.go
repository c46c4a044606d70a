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
		return fmt.Errorf("usage: sidecar proxy|init [flags]")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	switch args[0] {
	case "proxy":
		return sidecar.Main(ctx, args[1:], os.Stdout)
	case "init":
		return capture.Main(args[1:], os.Stdout)
	}
	return fmt.Errorf("%q is no command: proxy or init", args[0])
}
