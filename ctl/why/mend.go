package why

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	restclient "k8s.io/client-go/rest"

	"github.com/periplus/periplus/insight"
	"github.com/periplus/periplus/insight/why"
)

// mend offers the first safe way to mend each root, and does those that are wanted.
func (o *options) mend(cmd *cobra.Command, config *restclient.Config, r *why.Report) error {
	out := cmd.OutOrStdout()
	c, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	answers := bufio.NewScanner(cmd.InOrStdin())
	offered := 0
	var failed []error
	for _, f := range r.Roots {
		m := safe(f)
		if m == nil {
			continue
		}
		offered++
		fmt.Fprintf(out, "\n%s\n  %s\n", f.What, m.Command)
		if m.Note != "" {
			fmt.Fprintf(out, "  # %s\n", m.Note)
		}
		if !o.yes {
			fmt.Fprint(out, "Do it? [y/N] ")
			if !answers.Scan() || !yes(answers.Text()) {
				fmt.Fprintln(out, "left as it is")
				continue
			}
		}
		if err := apply(cmd.Context(), c, m.Change); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", m.Command, err))
			continue
		}
		fmt.Fprintln(out, "done")
	}
	if offered == 0 {
		fmt.Fprintln(out, "\nNothing of this can be mended without a decision of yours: see the commands above.")
	}
	return errors.Join(failed...)
}

func safe(f insight.Finding) *insight.Mend {
	for i := range f.Mend {
		if f.Mend[i].Change != nil {
			return &f.Mend[i]
		}
	}
	return nil
}

func yes(s string) bool {
	s = strings.ToLower(strings.TrimSpace(s))
	return s == "y" || s == "yes"
}

var patchTypes = map[string]types.PatchType{
	"strategic": types.StrategicMergePatchType, "merge": types.MergePatchType, "json": types.JSONPatchType,
}

// apply sends a change.
func apply(ctx context.Context, c dynamic.Interface, change *insight.Change) error {
	var on dynamic.ResourceInterface = c.Resource(schema.GroupVersionResource{Group: change.Group, Version: change.Version, Resource: change.Resource})
	if change.Namespace != "" {
		on = c.Resource(schema.GroupVersionResource{Group: change.Group, Version: change.Version, Resource: change.Resource}).Namespace(change.Namespace)
	}
	const manager = "peri-why"
	switch change.Verb {
	case "create":
		obj := &unstructured.Unstructured{}
		if err := obj.UnmarshalJSON([]byte(change.Body)); err != nil {
			return err
		}
		_, err := on.Create(ctx, obj, metav1.CreateOptions{FieldManager: manager})
		return err
	case "patch":
		_, err := on.Patch(ctx, change.Name, patchTypes[change.Patch], []byte(change.Body), metav1.PatchOptions{FieldManager: manager})
		return err
	case "delete":
		return on.Delete(ctx, change.Name, metav1.DeleteOptions{})
	}
	return fmt.Errorf("change %q is not known", change.Verb)
}
