package run

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
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
	f.StringVar(&o.overrides, "overrides", "", "JSON merged into the object that is made")
	f.StringVar(&o.dryRun, "dry-run", "none", `"client" prints what would be sent, "server" has it checked and stores nothing`)
	f.Lookup("dry-run").NoOptDefVal = "client"
	f.StringVarP(&o.output, "output", "o", "", "print the objects: yaml, json or name")
	f.BoolVarP(&o.stdin, "stdin", "i", false, "attach to the container with input")
	f.BoolVarP(&o.tty, "tty", "t", false, "with a terminal")
	f.BoolVar(&o.rm, "rm", false, "delete everything when the attached session ends")
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
	if w.dryRun == "client" {
		return w.print(out, list, "created (dry run)")
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
	made := make([]object, 0, len(list))
	for _, o := range list {
		stored, err := create(ctx, c, o.Object, w.createOptions())
		if err != nil {
			return err
		}
		stored.GetObjectKind().SetGroupVersionKind(o.GetObjectKind().GroupVersionKind())
		o.Object = stored
		made = append(made, o)
	}
	word := "created"
	if w.dryRun == "server" {
		word = "created (server dry run)"
	}
	if !w.stdin {
		return w.print(out, made, word)
	}
	err = w.attach(ctx, config, c, namespace, in, out, errOut)
	if w.rm {
		err = errors.Join(err, w.remove(context.WithoutCancel(ctx), c, made, out))
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
func (w *wanted) remove(ctx context.Context, c kubernetes.Interface, made []object, out io.Writer) error {
	background := metav1.DeletePropagationBackground
	o := metav1.DeleteOptions{PropagationPolicy: &background}
	var errs []error
	for i := len(made) - 1; i >= 0; i-- {
		var err error
		switch obj := made[i].Object.(type) {
		case *appsv1.Deployment:
			err = c.AppsV1().Deployments(obj.Namespace).Delete(ctx, obj.Name, o)
		case *batchv1.Job:
			err = c.BatchV1().Jobs(obj.Namespace).Delete(ctx, obj.Name, o)
		case *corev1.Pod:
			err = c.CoreV1().Pods(obj.Namespace).Delete(ctx, obj.Name, o)
		case *corev1.Service:
			err = c.CoreV1().Services(obj.Namespace).Delete(ctx, obj.Name, o)
		}
		if err == nil {
			fmt.Fprintf(out, "%s%s %q deleted\n", made[i].kind, made[i].group, w.name)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// print shows the objects as asked, or a line for each.
func (w *wanted) print(out io.Writer, list []object, word string) error {
	var p printers.ResourcePrinter
	switch w.output {
	case "yaml":
		p = &printers.YAMLPrinter{}
	case "json":
		p = &printers.JSONPrinter{}
	}
	for _, o := range list {
		switch {
		case p != nil:
			if err := p.PrintObj(o.Object, out); err != nil {
				return err
			}
		case w.output == "name":
			fmt.Fprintf(out, "%s%s/%s\n", o.kind, o.group, w.name)
		default:
			fmt.Fprintf(out, "%s%s/%s %s\n", o.kind, o.group, w.name, word)
		}
	}
	return nil
}
