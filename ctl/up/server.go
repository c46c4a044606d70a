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

It stays in the foreground until it is interrupted; containers then keep running
and are taken over by the next start. "peri down" ends everything.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	f := cmd.Flags()
	o.config.Flags(f)
	f.StringVar(&o.file, "config", "", "configuration file (YAML); flags win over it")
	f.BoolVar(&o.config.DisableAgent, "disable-agent", false, "run no pods on this machine")
	return cmd
}
