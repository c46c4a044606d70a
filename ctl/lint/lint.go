package lint

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/exec"

	"github.com/periplus/periplus/ctl/kubectl"
	"github.com/periplus/periplus/insight"
	"github.com/periplus/periplus/insight/lint"
)

const (
	exitFindings   = 1
	exitUnreadable = 2
)

type options struct {
	flags   *genericclioptions.ConfigFlags
	live    bool
	all     bool
	output  string
	disable []string
	only    string
	failOn  string
	rules   bool
}

// New returns the command.
func New() *cobra.Command {
	o := &options{flags: genericclioptions.NewConfigFlags(true), failOn: "warning", only: "advice"}
	cmd := &cobra.Command{
		Use:   "lint FILE|DIRECTORY|-… | --live",
		Short: "check manifests or the cluster for what production needs",
		Long: `Check manifests, or the objects of a cluster, for what production needs: requests and
limits, probes, a graceful end, logs, replicas and budgets, security, images, names that
fit together, versions of the API. Each finding says why it matters and shows the YAML
that mends it.

An object with the annotation periplus.io/lint-ignore: RULE,RULE is spared those rules.

The exit code is 0 if nothing was found, 1 if something was found that is at least as
bad as --fail-on says, 2 if something could not be read.`,
		Example: `  peri lint manifests/
  helm template chart | peri lint -
  peri lint --live -n shop --disable liveness-probe -o json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.rules {
				return list(cmd)
			}
			failed, err := o.run(cmd, args)
			switch {
			case err != nil:
				return exec.CodeExitError{Err: err, Code: exitUnreadable}
			case failed:
				return exec.CodeExitError{Err: errors.New(""), Code: exitFindings}
			}
			return nil
		},
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return exec.CodeExitError{Err: err, Code: exitUnreadable} })
	f := cmd.Flags()
	o.flags.AddFlags(f)
	f.BoolVar(&o.live, "live", false, "check the cluster instead of files: the namespace of the context, or -n")
	f.BoolVarP(&o.all, "all-namespaces", "A", false, "with --live: all namespaces")
	f.StringVarP(&o.output, "output", "o", "", "json for the findings as data")
	f.StringSliceVar(&o.disable, "disable", nil, "rules to leave out")
	f.StringVar(&o.only, "severity", o.only, "show what is at least as bad: error, warning or advice")
	f.StringVar(&o.failOn, "fail-on", o.failOn, "exit with 1 for what is at least as bad: error, warning or advice")
	f.BoolVar(&o.rules, "rules", false, "list the rules")
	return cmd
}

func list(cmd *cobra.Command) error {
	w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	for _, r := range lint.Rules() {
		fmt.Fprintf(w, "%s\t%s\t%s\n", r.Name, r.Severity, r.Why)
	}
	return w.Flush()
}

func (o *options) run(cmd *cobra.Command, args []string) (bool, error) {
	if o.output != "" && o.output != "json" {
		return false, fmt.Errorf("--output: %q is not allowed: must be json", o.output)
	}
	show, err := severity("--severity", o.only)
	if err != nil {
		return false, err
	}
	fail, err := severity("--fail-on", o.failOn)
	if err != nil {
		return false, err
	}
	var set *lint.Set
	switch {
	case o.live && len(args) > 0:
		return false, errors.New("--live checks the cluster: give no files with it")
	case o.live:
		set, err = o.cluster(cmd.Context())
	case len(args) == 0:
		return false, errors.New("name files or directories, - for standard input, or give --live")
	default:
		set, err = lint.Parse(cmd.InOrStdin(), args...)
	}
	if err != nil {
		return false, err
	}
	findings, err := lint.Check(set, o.disable)
	if err != nil {
		return false, fmt.Errorf("--disable: %w (--rules lists them)", err)
	}
	findings = slices.DeleteFunc(findings, func(f lint.Finding) bool { return f.Severity > show })
	if o.output == "json" {
		e := json.NewEncoder(cmd.OutOrStdout())
		e.SetIndent("", "  ")
		err = e.Encode(append([]lint.Finding{}, findings...))
	} else {
		err = lint.Print(cmd.OutOrStdout(), findings, len(set.Objects))
	}
	return slices.ContainsFunc(findings, func(f lint.Finding) bool { return f.Severity <= fail }), err
}

func severity(flag, s string) (lint.Severity, error) {
	for _, known := range []lint.Severity{lint.Error, lint.Warning, lint.Advice} {
		if known.String() == s {
			return known, nil
		}
	}
	return 0, fmt.Errorf("%s: %q is not allowed: must be error, warning or advice", flag, s)
}

// cluster reads what people have made; what controllers make of it is left out.
func (o *options) cluster(ctx context.Context) (*lint.Set, error) {
	kubectl.UseLocalCluster()
	namespace, _, err := o.flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, err
	}
	if o.all {
		namespace = ""
	}
	config, err := o.flags.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	config.UserAgent, config.QPS, config.Burst = "peri/lint", 200, 200
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	s, err := insight.FromCluster(ctx, c, insight.Options{Namespace: namespace})
	if utilnet.IsConnectionRefused(err) {
		return nil, fmt.Errorf("no cluster answers at %s: start one with \"peri up\", or name another with --kubeconfig", config.Host)
	}
	if err != nil {
		return nil, err
	}
	return lint.Of(slices.DeleteFunc(s.Objects(), func(obj insight.Object) bool {
		return metav1.GetControllerOf(obj) != nil || namespace != "" && obj.GetNamespace() != namespace
	})), nil
}
