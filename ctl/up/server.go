package up

import (
	"github.com/spf13/cobra"

	"github.com/periplus/periplus/app"
)

// NewServer returns "peri server": what "peri up" runs, for machines that others join.
func NewServer() *cobra.Command {
	o := &options{config: app.Defaults()}
	cmd := &cobra.Command{
		Use:   "server",
		Short: "run a server of a cluster that other machines join",
		Long: `Run a server: API server, etcd, controllers and scheduler, and a node of its own
unless --disable-agent is given. Other machines join with "peri agent"; "peri token
create --print-join-command" prints how.

Several servers keep the cluster alive when one dies: start the first with
--cluster-init, and two more with --server and a token of "peri token create --server".
Their etcd members form a Raft quorum, controllers and scheduler run on one of them.

It stays in the foreground until it is interrupted; containers then keep running
and are taken over by the next start. "peri down" ends everything.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	f := cmd.Flags()
	o.config.Flags(f)
	f.StringVar(&o.file, "config", "", "configuration file (YAML); flags win over it")
	f.BoolVar(&o.config.DisableAgent, "disable-agent", false, "run no pods on this machine")
	f.BoolVar(&o.config.ClusterInit, "cluster-init", false, "be the first of several servers: others join with --server and --token")
	f.StringVar(&o.config.Server, "server", "", "a server of the cluster that this one joins as a further server, https://HOST:6443")
	f.StringVar(&o.config.Token, "token", "", `token made by "peri token create --server", or "@" and a file that holds it`)
	return cmd
}
