package trace

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/kubernetes"

	"github.com/periplus/periplus/ctl/kubectl"
	"github.com/periplus/periplus/journey"
)

// New returns the command.
func New() *cobra.Command {
	flags := genericclioptions.NewConfigFlags(true)
	output := ""
	cmd := &cobra.Command{
		Use:   "trace [KIND/]NAME",
		Short: "show the journey of an object as a timeline",
		Long: `Show every step of an object's journey: the request, the store, controllers,
scheduler, kubelet, container runtime, network, endpoints and Service rules, to
the first answer. KIND is deployment (the default), pod, job, replicaset,
statefulset, daemonset or service; without it the first that exists is taken.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if output != "" && output != "json" {
				return fmt.Errorf("--output: %q is not allowed: must be json", output)
			}
			kubectl.UseLocalCluster()
			namespace, _, err := flags.ToRawKubeConfigLoader().Namespace()
			if err != nil {
				return err
			}
			config, err := flags.ToRESTConfig()
			if err != nil {
				return err
			}
			c, err := kubernetes.NewForConfig(config)
			if err != nil {
				return err
			}
			root, spans, err := collect(cmd.Context(), c, namespace, args[0])
			if err != nil {
				return err
			}
			if output == "json" {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(spans)
			}
			return print(cmd.OutOrStdout(), root, spans)
		},
	}
	flags.AddFlags(cmd.Flags())
	cmd.Flags().StringVarP(&output, "output", "o", "", "json for the spans themselves")
	return cmd
}

// collect finds the object and the spans of its journey and of the Services in front of it.
func collect(ctx context.Context, c kubernetes.Interface, namespace, arg string) (*target, []journey.Span, error) {
	root, err := find(ctx, c, namespace, arg)
	if err != nil {
		return nil, nil, err
	}
	related, err := root.related(ctx, c)
	if err != nil {
		return nil, nil, err
	}
	seen := map[journey.TraceID]bool{}
	var spans []journey.Span
	for _, obj := range append([]metav1.Object{root.object}, related...) {
		id := journey.TraceOf(obj)
		if seen[id] {
			continue
		}
		seen[id] = true
		body, err := c.CoreV1().RESTClient().Get().AbsPath(journey.Path).Param("trace", string(id)).Do(ctx).Raw()
		if apierrors.IsNotFound(err) {
			return nil, nil, fmt.Errorf("this API server keeps no journeys: it is not Periplus's")
		}
		if err != nil {
			return nil, nil, fmt.Errorf("read the journey of %s: %w", arg, err)
		}
		var part []journey.Span
		if err := json.Unmarshal(body, &part); err != nil {
			return nil, nil, fmt.Errorf("read the journey of %s: %w", arg, err)
		}
		spans = append(spans, part...)
	}
	if len(spans) == 0 {
		return nil, nil, fmt.Errorf("no steps of %s are known any more: they are kept in memory, the newest ones only, until the API server ends", arg)
	}
	slices.SortStableFunc(spans, func(a, b journey.Span) int { return cmp.Or(a.End.Compare(b.End), a.Start.Compare(b.Start)) })
	return root, spans, nil
}

// print shows the timeline; offsets count from the arrival of the first request.
func print(out io.Writer, root *target, spans []journey.Span) error {
	start := spans[0].Start
	for _, s := range spans {
		if s.Start.Before(start) {
			start = s.Start
		}
	}
	fmt.Fprintf(out, "%s %s/%s, %s\n\n", root.kind, root.object.GetNamespace(), root.object.GetName(), start.Local().Format("2006-01-02 15:04:05.000"))
	w := tabwriter.NewWriter(out, 2, 0, 2, ' ', 0)
	fmt.Fprintln(w, "T+\tTOOK\tCOMPONENT\tOBJECT\tSTEP")
	for _, s := range spans {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s/%s\t%s\n", offset(s.End.Sub(start)), took(s.End.Sub(s.Start)), s.Component, strings.ToLower(s.Kind), s.Name, describe(s))
	}
	return w.Flush()
}

func describe(s journey.Span) string {
	var text strings.Builder
	text.WriteString(s.Step)
	keys := make([]string, 0, len(s.Attrs))
	for k := range s.Attrs {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		text.WriteString("  " + k + "=" + s.Attrs[k])
	}
	return text.String()
}

func offset(d time.Duration) string { return fmt.Sprintf("%.3fs", d.Seconds()) }

func took(d time.Duration) string {
	if d < 50*time.Microsecond {
		return ""
	}
	return fmt.Sprintf("%.1fms", float64(d.Microseconds())/1000)
}
