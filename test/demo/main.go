package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/periplus/periplus/test/demo/tour"
)

// limit bounds the whole tour.
const limit = 8 * time.Minute

func main() {
	peri := flag.String("peri", "bin/peri", "the binary to show")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := tour.Run(limited, tour.Config{Peri: *peri, Out: os.Stdout, Color: colored()})
	switch {
	case ctx.Err() != nil && !errors.Is(err, tour.ErrLeft):
		fmt.Fprintln(os.Stderr, "demo: interrupted; nothing is left behind")
		os.Exit(130)
	case errors.Is(err, tour.ErrStage) && !errors.Is(err, tour.ErrLeft): // it has been told
		os.Exit(1)
	case err != nil:
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// colored tells whether the output is a terminal that wants colours.
func colored() bool {
	info, err := os.Stdout.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}
