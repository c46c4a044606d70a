package up

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/util/homedir"

	"github.com/periplus/periplus/app"
)

type options struct {
	config     app.Config
	file       string
	background bool
	merge      bool
	name       string
	lab        labFlags
	api        apiFlags
}

// New returns the command.
func New() *cobra.Command {
	o := &options{config: app.Defaults()}
	o.config.ShareDisk()
	cmd := &cobra.Command{
		Use:   "up",
		Short: "start a cluster on this machine",
		Long: `Start a cluster on this machine: API server, etcd, controllers, scheduler,
kubelet, container runtime, network, Service proxy and DNS in one process.

It stays in the foreground until it is interrupted; containers then keep running
and are taken over by the next start. "peri down" ends everything.

With --name or --nodes it is a cluster of several nodes on this machine, each in
namespaces of its own: "peri clusters" lists them, "peri down --name NAME" ends one.

Its machine is taken to be yours: unlike "peri server" and "peri agent" it does not
evict pods or remove images because the disk fills (--eviction-hard, --image-gc-high-threshold).

With --api-only it is an API server for tests, which needs no root and keeps nothing.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	f := cmd.Flags()
	o.config.Flags(f)
	f.StringVar(&o.file, "config", "", "configuration file (YAML); flags win over it")
	f.BoolVarP(&o.background, "detach", "d", false, "run in the background; return when the node is ready")
	f.BoolVar(&o.merge, "merge-kubeconfig", false, "add the cluster to ~/.kube/config and make it the current context")
	f.StringVar(&o.name, "context", "periplus", "name of the context that --merge-kubeconfig adds")
	o.lab.add(f)
	o.api.add(f)
	return cmd
}

func (o *options) run(cmd *cobra.Command) error {
	if o.api.only {
		return o.runAPI(cmd)
	}
	if o.lab.wanted() {
		return o.runLab(cmd)
	}
	if err := o.config.LoadAndOverride(o.file, cmd.Flags()); err != nil {
		return err
	}
	if o.background {
		if err := o.detach(cmd); err != nil {
			return err
		}
		return o.mergeKubeconfig(cmd.OutOrStdout())
	}
	out := cmd.ErrOrStderr()
	notify := notifier()
	var once sync.Once
	return app.Up(cmd.Context(), &o.config, o.config.Logger(), func(stage string, after time.Duration) {
		line := fmt.Sprintf("  ✓ %-12s %6.2fs\n", stage, after.Seconds())
		if notify != nil {
			// The parent may be gone: it waits only for the first start.
			_, _ = io.WriteString(notify, line)
		} else {
			fmt.Fprint(out, line)
		}
		if stage != app.ReadyNode && stage != app.ReadyServer {
			return
		}
		once.Do(func() {
			if notify != nil {
				_, _ = io.WriteString(notify, readyLine)
				_ = notify.Close()
				return
			}
			fmt.Fprintf(out, "The cluster is ready.  export KUBECONFIG=%s\n", o.config.AdminKubeconfig())
			if err := o.mergeKubeconfig(out); err != nil {
				fmt.Fprintln(out, "peri:", err)
			}
		})
	})
}

func (o *options) mergeKubeconfig(out io.Writer) error {
	if !o.merge {
		return nil
	}
	return o.mergeFrom(o.config.AdminKubeconfig(), out)
}

// mergeFrom adds the cluster that a file describes to the user's configuration.
func (o *options) mergeFrom(from string, out io.Writer) error {
	to := os.Getenv("KUBECONFIG")
	if to == "" || len(filepath.SplitList(to)) > 1 {
		to = filepath.Join(homedir.HomeDir(), ".kube", "config")
	}
	if err := app.MergeKubeconfig(from, to, o.name); err != nil {
		return err
	}
	fmt.Fprintf(out, "Context %q is now the current one in %s.\n", o.name, to)
	return nil
}
