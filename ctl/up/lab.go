package up

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/periplus/periplus/app"
)

// stopTimeout bounds the end of a cluster after an interrupt.
const stopTimeout = 30 * time.Second

// labFlags ask for a cluster of several nodes on this machine.
type labFlags struct {
	name  string
	nodes int
	root  string
}

func (l *labFlags) add(f *pflag.FlagSet) {
	f.StringVar(&l.name, "name", "", "name of a cluster beside others on this machine, each node in namespaces of its own")
	f.IntVar(&l.nodes, "nodes", 0, "how many nodes it has (default: as many as before, or 1)")
	f.StringVar(&l.root, "clusters-dir", app.DefaultClustersDir, "directory of the clusters that have a name")
}

func (l *labFlags) wanted() bool { return l.name != "" || l.nodes != 0 }

// own are flags that each node has values of its own for, or that are not a node's.
var own = []string{
	"name", "nodes", "clusters-dir", "detach", "merge-kubeconfig", "context",
	"state-dir", "run-dir", "kubeconfig-path", "node-name", "node-ip", "cgroup-root",
}

// passed are the given flags that the nodes get.
func passed(f *pflag.FlagSet) []string {
	var out []string
	f.Visit(func(flag *pflag.Flag) {
		if slices.Contains(own, flag.Name) {
			return
		}
		if s, ok := flag.Value.(pflag.SliceValue); ok {
			for _, v := range s.GetSlice() {
				out = append(out, "--"+flag.Name+"="+v)
			}
			return
		}
		out = append(out, "--"+flag.Name+"="+flag.Value.String())
	})
	return out
}

// runLab starts the cluster; without --detach it ends when the command does.
func (o *options) runLab(cmd *cobra.Command) error {
	flags := passed(cmd.Flags())
	if err := o.config.LoadAndOverride(o.file, cmd.Flags()); err != nil {
		return err
	}
	if o.lab.name == "" {
		o.lab.name = "periplus"
	}
	out := cmd.OutOrStdout()
	ctx := cmd.Context()
	stop := func() error {
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer cancel()
		return app.DownCluster(limited, &o.config, o.lab.root, o.lab.name, false, out)
	}
	cluster, err := app.UpCluster(ctx, &o.config, app.LabOptions{
		Root: o.lab.root, Name: o.lab.name, Nodes: o.lab.nodes, Flags: flags, AgentFlags: flags, Out: out,
	})
	if err != nil {
		if cluster != nil {
			_ = stop() // half a cluster is of no use; why it is one is the error
		}
		return err
	}
	fmt.Fprintf(out, "The cluster is ready.  export KUBECONFIG=%s\n", cluster.Kubeconfig())
	if o.merge {
		if !cmd.Flags().Changed("context") {
			o.name = cluster.Context()
		}
		if err := o.mergeFrom(cluster.Kubeconfig(), out); err != nil {
			return err
		}
	}
	if o.background {
		return nil
	}
	<-ctx.Done()
	return stop()
}
