package hollow

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/periplus/periplus/app"
	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/ctl/kubectl"
	"github.com/periplus/periplus/hollow"
)

// New returns the command.
func New() *cobra.Command {
	o := &app.HollowOptions{Config: hollow.Defaults()}
	c := app.Defaults()
	cmd := &cobra.Command{
		Use:   "hollow --nodes N",
		Short: "nodes that exist only in the API: for tests of schedulers, operators and servers",
		Long: `Register nodes that exist only in the API, and do what their kubelets would do:
heartbeats, and pods that become Running and Ready, complete and go. Nothing runs.

The cluster is found as kubectl finds it. With --server and --token the nodes join as
agents do, each with a certificate of its own; they stay at the end, since a node may
not remove itself.

Annotations say what happens:
  pod   ` + hollow.RunFor + `=5s        its containers run that long
  pod   ` + hollow.ExitCode + `=1       and end with that
  node  ` + hollow.Silent + `=true      no sign of life any more`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Server == "" && o.Kubeconfig == "" {
				kubectl.UseLocalCluster()
			}
			if err := c.Complete(); err != nil {
				return err
			}
			out, begin := cmd.ErrOrStderr(), time.Now()
			return app.Hollow(cmd.Context(), o, c.Logger(), func() {
				fmt.Fprintf(out, "%d nodes registered in %.2f s: kubectl get nodes -l %s=%s\n", o.Nodes, time.Since(begin).Seconds(), base.HollowLabel, o.Prefix)
				if o.Keep {
					fmt.Fprintf(out, "They stay when this ends: kubectl delete node -l %s=%s removes them.\n", base.HollowLabel, o.Prefix)
				}
			})
		},
	}
	f := cmd.Flags()
	f.IntVarP(&o.Nodes, "nodes", "n", o.Nodes, "how many nodes")
	f.StringVar(&o.Prefix, "name-prefix", o.Prefix, "their names are <name-prefix>-<number>")
	f.IntVar(&o.First, "first", 0, "the first number: several processes can share the work")
	f.StringVar(&o.Kubeconfig, "kubeconfig", "", "of somebody who may write nodes and pods (default: as kubectl)")
	f.StringVar(&o.Server, "server", "", "a server of the cluster to join, https://HOST:6443")
	f.StringVar(&o.Token, "token", "", `join token, or "@" and a file that holds it`)
	f.Var(&o.CPU, "cpu", "processors of each node")
	f.Var(&o.Memory, "memory", "memory of each node")
	f.Var(&o.Storage, "storage", "ephemeral storage of each node")
	f.IntVar(&o.MaxPods, "pods", o.MaxPods, "pods that each node takes")
	f.StringToStringVar(&o.Labels, "labels", nil, "labels of the nodes: key=value,…")
	f.Var(&o.Taints, "taints", "taints of the nodes: key=value:Effect,…")
	f.IntVar(&o.Zones, "zones", 0, "spread the nodes over this many zones")
	f.TextVar(&o.NodeCIDR, "node-cidr", o.NodeCIDR, "where the nodes' addresses come from; nobody answers there")
	f.TextVar(&o.PodCIDR, "pod-cidr", o.PodCIDR, "where the pods' addresses come from; nobody answers there")
	f.Var(&o.Start, "start-delay", `from the binding of a pod until it is Ready: 300ms, 100ms-2s, "p50=300ms,p99=2s" or never`)
	f.Var(&o.Stop, "stop-delay", "how long deleted pods go on, at most their grace period")
	f.Var(&o.JobTime, "job-time", "how long the pods of Jobs run before they succeed")
	f.BoolVar(&o.Keep, "keep", false, "leave the nodes in the API at the end")
	f.StringVar(&c.LogLevel, "log-level", c.LogLevel, "debug, info, warn or error")
	f.StringVar(&c.LogFormat, "log-format", c.LogFormat, "text or json")
	return cmd
}
