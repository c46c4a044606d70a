package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/kubernetes"

	"github.com/periplus/periplus/ctl/kubectl"
)

// New returns the command.
func New() *cobra.Command {
	o := &options{}
	flags := genericclioptions.NewConfigFlags(true)
	cmd := &cobra.Command{
		Use:   "run NAME --image=IMAGE [-- ARGS...]",
		Short: "run an image: a Deployment, a Pod (--restart=Never) or a Job (--restart=OnFailure)",
		Example: `  peri run web --image=nginx --port=80 --expose --replicas=3
  peri run web --image=nginx --overrides=@more.yaml     # volumes, probes, init containers …
  peri run task --image=busybox --restart=OnFailure -- echo hello
  peri run shell --image=busybox --restart=Never -it --rm -- sh`,
		Args: func(cmd *cobra.Command, args []string) error {
			n := len(args)
			if dash := cmd.ArgsLenAtDash(); dash >= 0 {
				n = dash
			}
			if n != 1 {
				return fmt.Errorf("want one NAME before --, got %d", n)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o.name, o.args = args[0], args[1:]
			o.replicSet = cmd.Flags().Changed("replicas")
			w, err := o.check()
			if err != nil {
				return err
			}
			return w.run(cmd.Context(), flags, cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	flags.AddFlags(f)
	f.StringVar(&o.image, "image", "", "the image to run")
	f.StringVar(&o.restart, "restart", "Always", "Always makes a Deployment, OnFailure a Job, Never a Pod")
	f.Int32Var(&o.replicas, "replicas", 1, "how many pods")
	f.StringVar(&o.port, "port", "", "port that the container listens on")
	f.BoolVar(&o.expose, "expose", false, "also make a Service for --port")
	f.StringArrayVar(&o.env, "env", nil, "environment variable NAME=value; may be given again")
	f.StringSliceVarP(&o.labels, "labels", "l", nil, "labels key=value,… of all that is made")
	f.BoolVar(&o.command, "command", false, "the arguments after -- replace the image's entry point instead of its arguments")
	f.StringVar(&o.requests, "requests", "", "resources requested: cpu=100m,memory=64Mi")
	f.StringVar(&o.limits, "limits", "", "resources allowed: cpu=1,memory=128Mi")
	f.StringVar(&o.pull, "image-pull-policy", "", "Always, IfNotPresent or Never")
	f.StringVar(&o.account, "serviceaccount", "", "service account of the pods")
	f.StringVar(&o.overrides, "overrides", "", "JSON merged into the object that is made, or @FILE with JSON or YAML")
	f.StringVar(&o.dryRun, "dry-run", "none", `"client" prints what would be sent, "server" has it checked and stores nothing`)
	f.Lookup("dry-run").NoOptDefVal = "client"
	f.StringVarP(&o.output, "output", "o", "", "print the objects: yaml, json or name")
	f.BoolVarP(&o.stdin, "stdin", "i", false, "attach to the container with input")
	f.BoolVarP(&o.tty, "tty", "t", false, "with a terminal")
	f.BoolVar(&o.rm, "rm", false, "delete everything when the attached session ends")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "with --stdin: print nothing but what the container prints")
	f.DurationVar(&o.patience, "pod-running-timeout", time.Minute, "with --stdin: how long to wait until the pod runs")
	return cmd
}

func (w *wanted) run(ctx context.Context, flags *genericclioptions.ConfigFlags, in io.Reader, out, errOut io.Writer) error {
	kubectl.UseLocalCluster()
	namespace, _, err := flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return err
	}
	list, err := w.objects(namespace)
	if err != nil {
		return err
	}
	p := w.printer(out)
	if w.dryRun == "client" {
		for _, o := range list {
			if err := p(o, "created (dry run)"); err != nil {
				return err
			}
		}
		return nil
	}
	config, err := flags.ToRESTConfig()
	if err != nil {
		return err
	}
	config.UserAgent = "peri/run"
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	word := "created"
	if w.dryRun == "server" {
		word = "created (server dry run)"
	}
	made := make([]object, 0, len(list))
	for _, o := range list {
		stored, err := create(ctx, c, o.Object, w.createOptions())
		if utilnet.IsConnectionRefused(err) {
			return fmt.Errorf("no cluster answers at %s: start one with \"peri up\", or name another with --kubeconfig", config.Host)
		}
		if err != nil {
			return err
		}
		stored.GetObjectKind().SetGroupVersionKind(o.GetObjectKind().GroupVersionKind())
		o.Object = stored
		made = append(made, o)
		if !w.stdin {
			if err := p(o, word); err != nil {
				return err
			}
		}
	}
	if !w.stdin {
		return nil
	}
	err = w.attach(ctx, config, c, made[0].meta().GetNamespace(), in, out, errOut)
	if w.rm {
		report := out
		if w.quiet {
			report = io.Discard
		}
		err = errors.Join(err, remove(context.WithoutCancel(ctx), c, made, report))
	}
	return err
}

func (w *wanted) createOptions() metav1.CreateOptions {
	o := metav1.CreateOptions{FieldManager: "peri-run", FieldValidation: metav1.FieldValidationStrict}
	if w.dryRun == "server" {
		o.DryRun = []string{metav1.DryRunAll}
	}
	return o
}

func create(ctx context.Context, c kubernetes.Interface, obj runtime.Object, o metav1.CreateOptions) (runtime.Object, error) {
	switch obj := obj.(type) {
	case *appsv1.Deployment:
		return c.AppsV1().Deployments(obj.Namespace).Create(ctx, obj, o)
	case *batchv1.Job:
		return c.BatchV1().Jobs(obj.Namespace).Create(ctx, obj, o)
	case *corev1.Pod:
		return c.CoreV1().Pods(obj.Namespace).Create(ctx, obj, o)
	case *corev1.Service:
		return c.CoreV1().Services(obj.Namespace).Create(ctx, obj, o)
	}
	return nil, fmt.Errorf("cannot create a %T", obj)
}

// remove deletes what was made, the Service first.
func remove(ctx context.Context, c kubernetes.Interface, made []object, out io.Writer) error {
	background := metav1.DeletePropagationBackground
	o := metav1.DeleteOptions{PropagationPolicy: &background}
	var errs []error
	for _, m := range slices.Backward(made) {
		name, namespace := m.meta().GetName(), m.meta().GetNamespace()
		var err error
		switch m.Object.(type) {
		case *appsv1.Deployment:
			err = c.AppsV1().Deployments(namespace).Delete(ctx, name, o)
		case *batchv1.Job:
			err = c.BatchV1().Jobs(namespace).Delete(ctx, name, o)
		case *corev1.Pod:
			err = c.CoreV1().Pods(namespace).Delete(ctx, name, o)
		case *corev1.Service:
			err = c.CoreV1().Services(namespace).Delete(ctx, name, o)
		}
		if err == nil {
			fmt.Fprintf(out, "%s %q deleted from %s namespace\n", m.kind, name, namespace)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// printer returns what shows an object as asked: itself, its name, or a line that
// says what happened to it.
func (w *wanted) printer(out io.Writer) func(o object, what string) error {
	switch w.output {
	case "yaml":
		p := &printers.YAMLPrinter{} // it separates documents
		return func(o object, _ string) error { return p.PrintObj(o.Object, out) }
	case "json":
		p := &printers.JSONPrinter{}
		return func(o object, _ string) error { return p.PrintObj(o.Object, out) }
	}
	return func(o object, what string) error {
		if w.output == "name" {
			what = ""
		}
		_, err := fmt.Fprintln(out, strings.TrimSpace(o.kind+"/"+o.meta().GetName()+" "+what))
		return err
	}
}
