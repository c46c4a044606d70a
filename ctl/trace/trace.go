package trace

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/kubernetes"

	"github.com/periplus/periplus/ctl/kubectl"
	"github.com/periplus/periplus/journey"
	"github.com/periplus/periplus/journey/otlp"
)

// New returns the command.
func New() *cobra.Command {
	flags := genericclioptions.NewConfigFlags(true)
	output, collector := "", ""
	var headers []string
	cmd := &cobra.Command{
		Use:   "trace [KIND/]NAME",
		Short: "show the journey of an object as a timeline",
		Long: `Show every step of an object's journey: the request, admission, the store,
controllers, scheduler, volumes, kubelet, container runtime, network, sidecars,
endpoints and Service rules on every node, the edge, to the first answered request
with its hops. KIND is ` + kinds + `;
without it the first that exists is taken.`,
		Example: `  peri trace web
  peri trace ingress shop
  peri trace pvc/data -o json
  peri trace deployment web --otlp http://localhost:4318`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if output != "" && output != "json" {
				return fmt.Errorf("--output: %q is not allowed: must be json", output)
			}
			header := http.Header{}
			for _, h := range headers {
				name, value, ok := strings.Cut(h, "=")
				if !ok {
					return fmt.Errorf("--otlp-header: %q must be NAME=VALUE", h)
				}
				header.Add(name, value)
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
			root, spans, err := collect(cmd.Context(), c, namespace, strings.Join(args, "/"))
			if err != nil {
				return err
			}
			if collector != "" {
				return export(cmd, collector, header, root, spans)
			}
			if output == "json" {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(spans)
			}
			return print(cmd.OutOrStdout(), root, spans)
		},
	}
	flags.AddFlags(cmd.Flags())
	cmd.Flags().StringVarP(&output, "output", "o", "", "json for the spans themselves")
	cmd.Flags().StringVar(&collector, "otlp", "", "send the journey to this collector by OTLP/HTTP, like http://localhost:4318")
	cmd.Flags().StringArrayVar(&headers, "otlp-header", nil, "NAME=VALUE to send along with --otlp; may be repeated")
	return cmd
}

// export sends the journey to a collector.
func export(cmd *cobra.Command, collector string, header http.Header, root *target, spans []journey.Span) error {
	id := journey.TraceOf(root.object)
	r := otlp.Encode(id, fmt.Sprintf("%s %s/%s", root.kind, root.object.GetNamespace(), root.object.GetName()), spans)
	if err := otlp.Send(cmd.Context(), collector, header, r); err != nil {
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%d steps sent to %s as trace %s\n", len(spans), collector, id)
	return nil
}

// kindName is a target's kind as it may be typed.
func kindName(t *target) string {
	if t.kind == "PersistentVolumeClaim" {
		return "pvc"
	}
	return strings.ToLower(t.kind)
}
