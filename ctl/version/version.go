package version

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/periplus/periplus/app"
)

// New returns the command.
func New() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "print the versions of Periplus and of the API that it serves",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "peri %s (Kubernetes %s, %s, %s/%s)\n", app.Release, app.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}
