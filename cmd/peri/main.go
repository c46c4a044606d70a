package main

import (
	"os"

	"github.com/periplus/periplus/ctl"
)

func main() {
	os.Exit(ctl.Main(os.Args, os.Stdin, os.Stdout, os.Stderr))
}
