package down

import (
	"github.com/spf13/cobra"

	"github.com/periplus/periplus/app"
)

// New returns the command.
func New() *cobra.Command {
	c := app.Defaults()
	var file string
	var purge, keep bool
	var name, root string
	cmd := &cobra.Command{
		Use:   "down",
		Short: "stop the cluster of this machine and all its containers",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := c.LoadAndOverride(file, cmd.Flags()); err != nil {
				return err
			}
			if name != "" {
				return app.DownCluster(cmd.Context(), &c, root, name, purge, cmd.OutOrStdout())
			}
			return app.Down(cmd.Context(), &c, app.DownOptions{KeepContainers: keep, Purge: purge, Out: cmd.OutOrStdout()})
		},
	}
	f := cmd.Flags()
	c.Flags(f)
	f.StringVar(&file, "config", "", "configuration file of the cluster")
	f.StringVar(&name, "name", "", "name of a cluster that \"peri clusters\" lists")
	f.StringVar(&root, "clusters-dir", app.DefaultClustersDir, "directory of the clusters that have a name")
	f.BoolVar(&keep, "keep-containers", false, "stop peri only: containers, networks and rules go on")
	f.BoolVar(&purge, "purge", false, "also delete the state: every object, image and volume")
	return cmd
}
