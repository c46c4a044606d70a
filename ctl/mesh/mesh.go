package mesh

import (
	"github.com/spf13/cobra"

	"github.com/periplus/periplus/mesh/capture"
	"github.com/periplus/periplus/mesh/sidecar"
)

// New returns the commands.
func New() []*cobra.Command {
	return []*cobra.Command{
		{
			Use: "mesh-init", Short: "send a pod's connections through its sidecar", Hidden: true, DisableFlagParsing: true,
			RunE: func(cmd *cobra.Command, args []string) error { return capture.Main(args, cmd.OutOrStdout()) },
		},
		{
			Use: "mesh-proxy", Short: "the sidecar of a pod", Hidden: true, DisableFlagParsing: true,
			RunE: func(cmd *cobra.Command, args []string) error {
				return sidecar.Main(cmd.Context(), args, cmd.OutOrStdout())
			},
		},
		{
			Use: "mesh-wait", Short: "wait for a pod's sidecar", Hidden: true, Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error { return sidecar.Wait(cmd.Context()) },
		},
	}
}
