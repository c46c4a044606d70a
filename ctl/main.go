package ctl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/client-go/util/exec"

	"github.com/periplus/periplus/ctl/kubectl"
)

// Main runs the command that args name and returns the exit code. A binary
// called kubectl is kubectl.
func Main(args []string, in io.Reader, out, errOut io.Writer) int {
	if filepath.Base(args[0]) == "kubectl" {
		return kubectl.Main(args[1:])
	}
	if len(args) > 1 && args[1] == "kubectl" {
		// Before signals are caught here: kubectl ends by them in its own way.
		return kubectl.Main(args[2:])
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := &cobra.Command{
		Use:           "peri",
		Short:         "a complete Kubernetes in one binary",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errOut)
	root.SetArgs(args[1:])
	for _, verb := range verbs() {
		root.AddCommand(verb)
	}
	if err := root.ExecuteContext(ctx); err != nil {
		if err.Error() != "" { // else the code alone is the answer
			fmt.Fprintln(errOut, "peri:", err)
		}
		// The code of a program that was run, where there is one.
		var exited exec.CodeExitError
		if errors.As(err, &exited) && exited.Code != 0 {
			return exited.Code
		}
		return 1
	}
	return 0
}
