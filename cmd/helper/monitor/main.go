package main

import (
	"fmt"
	"os"

	"github.com/periplus/periplus/containers/monitor"
)

func main() {
	if err := monitor.Main(os.Args); err != nil {
		fmt.Fprintln(os.Stderr, "monitor:", err)
		os.Exit(1)
	}
}
