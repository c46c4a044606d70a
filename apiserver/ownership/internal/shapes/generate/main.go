package main

import (
	"fmt"
	"os"

	"github.com/periplus/periplus/apiserver/ownership/internal/shapes"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: generate FILE")
		os.Exit(2)
	}
	data, err := shapes.Table()
	if err == nil {
		err = os.WriteFile(os.Args[1], data, 0o644) //nolint:gosec // source code
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}
