package why

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/util/exec"

	"github.com/periplus/periplus/ctl/kubectl"
	insight "github.com/periplus/periplus/insight/why"
)

// Exit codes, besides 0 for healthy.
const (
	exitFaults  = 1
	exitUnknown = 2
)

type options struct {
	flags  *genericclioptions.ConfigFlags
	output string
	fix    bool
	yes    bool
}

// New returns the command.
func New() *cobra.Command {
	o := &options{flags: genericclioptions.NewConfigFlags(true)}
	cmd := &cobra.Command{
		Use:   "why [KIND/]NAME",
		Short: "explain why an object does not work: root cause, evidence, and what mends it",
		Long: `Explain why an object does not work. Statuses, events, logs, endpoints, policies,
quotas and all that it refers to are read and put together: the root cause comes
first, with the evidence and the command that mends it.

KIND is ingress, service, deployment, statefulset, daemonset, replicaset, job, cronjob,
pod, persistentvolumeclaim, persistentvolume, horizontalpodautoscaler, node or namespace,
or a short name that kubectl knows. Without KIND everything of that name is looked at,
without NAME the whole namespace.

The exit code is 0 if all is well, 1 if something was found, 2 if it cannot be told.`,
		Example: `  peri why web
  peri why pod/web-5d8f7c6b9-x2x4q -n shop
  peri why node/n1 -o json
  peri why service/web --fix`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			code, err := o.run(cmd, strings.Join(args, ""))
			if err != nil {
				return exec.CodeExitError{Err: err, Code: exitUnknown}
			}
			if code != 0 {
				return exec.CodeExitError{Err: errors.New(""), Code: code}
			}
			return nil
		},
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return exec.CodeExitError{Err: err, Code: exitUnknown} })
	o.flags.AddFlags(cmd.Flags())
	cmd.Flags().StringVarP(&o.output, "output", "o", "", "json for the whole report")
	cmd.Flags().BoolVar(&o.fix, "fix", false, "mend what can be mended safely, after asking")
	cmd.Flags().BoolVarP(&o.yes, "yes", "y", false, "with --fix: do not ask")
	return cmd
}

func (o *options) run(cmd *cobra.Command, arg string) (int, error) {
	if o.output != "" && o.output != "json" {
		return 0, fmt.Errorf("--output: %q is not allowed: must be json", o.output)
	}
	if o.yes && !o.fix {
		return 0, errors.New("--yes needs --fix")
	}
	if o.fix && o.output != "" {
		return 0, errors.New("--fix asks, and cannot be combined with --output")
	}
	kubectl.UseLocalCluster()
	namespace, _, err := o.flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return 0, err
	}
	target, err := insight.ParseTarget(arg, namespace)
	if err != nil {
		return 0, err
	}
	config, err := o.flags.ToRESTConfig()
	if err != nil {
		return 0, err
	}
	quick(config)
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		return 0, err
	}
	s, found, err := insight.Load(cmd.Context(), c, &prober{config: config, client: c}, target, namespace)
	if err != nil {
		return 0, explain(err, config)
	}
	r := insight.Explain(s, found[0], found[1:]...)
	if o.output == "json" {
		e := json.NewEncoder(cmd.OutOrStdout())
		e.SetIndent("", "  ")
		err = e.Encode(r)
	} else {
		err = r.Print(cmd.OutOrStdout())
	}
	if err == nil && o.fix {
		err = o.mend(cmd, config, r)
	}
	if err != nil {
		return 0, err
	}
	switch r.Verdict {
	case insight.HasFaults:
		return exitFaults, nil
	case insight.IsUnknown, insight.IsStarting:
		return exitUnknown, nil
	}
	return 0, nil
}

// quick lets the few dozen requests of one answer go at once.
func quick(config *restclient.Config) {
	config.UserAgent = "peri/why"
	config.QPS, config.Burst = 200, 200
}

func explain(err error, config *restclient.Config) error {
	switch {
	case utilnet.IsConnectionRefused(err):
		return fmt.Errorf("no cluster answers at %s: start one with \"peri up\", or name another with --kubeconfig", config.Host)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("%s does not accept the credentials: %w", config.Host, err)
	}
	return err
}
