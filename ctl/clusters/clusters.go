package clusters

import (
	"github.com/spf13/cobra"

	"github.com/periplus/periplus/app"
)

// New returns the command.
func New() *cobra.Command {
	root, cgroupRoot := app.DefaultClustersDir, app.Defaults().CgroupRoot
	cmd := &cobra.Command{
		Use:   "clusters",
		Short: "list the clusters of this machine that have a name",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return app.ListClusters(root, cgroupRoot, cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&root, "clusters-dir", root, "directory of the clusters that have a name")
	return cmd
}
