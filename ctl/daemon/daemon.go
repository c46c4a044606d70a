package daemon

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/periplus/periplus/app"
)

// New returns one command for each part that can run alone.
func New() []*cobra.Command {
	var out []*cobra.Command
	for _, d := range app.Daemons() {
		out = append(out, command(d))
	}
	return out
}

func command(d app.Daemon) *cobra.Command {
	c := app.Defaults()
	c.Kubeconfig = ""
	var file string
	cmd := &cobra.Command{
		Use:   d.Name,
		Short: d.Short,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := c.LoadAndOverride(file, cmd.Flags()); err != nil {
				return err
			}
			return d.Run(cmd.Context(), &c, c.Logger(), func(stage string, after time.Duration) {
				fmt.Fprintf(cmd.ErrOrStderr(), "  ✓ %-12s %6.2fs\n", stage, after.Seconds())
			})
		},
	}
	c.Flags(cmd.Flags())
	cmd.Flags().StringVar(&file, "config", "", "configuration file (YAML); flags win over it")
	cmd.Flags().StringVar(&c.ComponentKubeconfig, "kubeconfig", "", "identity and address of the API server (default: what peri apiserver wrote into the state directory)")
	return cmd
}
