package agent

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/periplus/periplus/app"
)

// New returns the command.
func New() *cobra.Command {
	c := app.Defaults()
	c.Kubeconfig = ""
	var file string
	cmd := &cobra.Command{
		Use:   "agent --server https://HOST:6443 --token TOKEN",
		Short: "run a node of a cluster whose server is another machine",
		Long: `Run a node: kubelet, container runtime, network, Service proxy and DNS. How the
cluster is set up, it learns from the server.

Server and token are needed the first time; "peri token create --print-join-command"
prints them on a server. A token with a hash ("K10…::") names the cluster's
authority: the server is known before anything is sent to it. Later starts use the
certificate that the node was given, which is renewed while it runs, and know all
servers of the cluster.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := c.LoadAndOverride(file, cmd.Flags()); err != nil {
				return err
			}
			out := cmd.ErrOrStderr()
			return app.Agent(cmd.Context(), &c, c.Logger(), func(stage string, after time.Duration) {
				fmt.Fprintf(out, "  ✓ %-12s %6.2fs\n", stage, after.Seconds())
				if stage == app.ReadyNode {
					fmt.Fprintf(out, "Node %s is ready.\n", c.NodeName)
				}
			})
		},
	}
	f := cmd.Flags()
	c.Flags(f)
	f.StringVar(&file, "config", "", "configuration file (YAML); flags win over it")
	f.StringVar(&c.Server, "server", "", "a server of the cluster, https://HOST:6443")
	f.StringVar(&c.Token, "token", "", `join token, or "@" and a file that holds it`)
	return cmd
}
