package up

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/periplus/periplus/app"
)

// apiFlags are those of an API server for tests.
type apiFlags struct {
	only bool
	crds []string
}

func (a *apiFlags) add(f *pflag.FlagSet) {
	f.BoolVar(&a.only, "api-only", false, "an API server for tests: no node, no scheduler, nothing is kept; --api-port 0 takes a free port")
	f.StringSliceVar(&a.crds, "crds", nil, "with --api-only: files or directories with definitions of custom resources to install")
}

func (o *options) runAPI(cmd *cobra.Command) error {
	if o.background || o.lab.wanted() || o.merge {
		return errors.New("api-only: not together with --detach, --name, --nodes or --merge-kubeconfig")
	}
	options := app.APIOptions{Config: &o.config, CRDs: o.api.crds}
	// What is for root only by default is not for tests.
	if !cmd.Flags().Changed("kubeconfig-path") {
		o.config.Kubeconfig = ""
	}
	begin := time.Now()
	return app.UpAPI(cmd.Context(), options, o.config.Logger(), func(kubeconfig string) {
		fmt.Fprintf(cmd.ErrOrStderr(), "The API server is ready after %.2fs.  export KUBECONFIG=%s\n", time.Since(begin).Seconds(), kubeconfig)
	})
}
