package image

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/encoding/protojson"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// list is "ls".
func list(t *target) *cobra.Command {
	var output string
	var quiet, digests, full bool
	cmd := &cobra.Command{
		Use:     "ls [NAME]",
		Aliases: []string{"list"},
		Short:   "List images",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if output != "" && output != "json" {
				return fmt.Errorf("--output %q is not supported, want json", output)
			}
			req := &runtimeapi.ListImagesRequest{}
			if len(args) == 1 {
				if !isID(args[0]) {
					if err := checkName(args[0]); err != nil {
						return err
					}
				}
				req.Filter = &runtimeapi.ImageFilter{Image: &runtimeapi.ImageSpec{Image: args[0]}}
			}
			client, done, err := t.cri()
			if err != nil {
				return err
			}
			defer done()
			resp, err := client.ListImages(cmd.Context(), req)
			if err != nil {
				return plain(err)
			}
			out := cmd.OutOrStdout()
			switch {
			case output == "json":
				return printJSON(out, resp)
			case quiet:
				for _, i := range resp.Images {
					fmt.Fprintln(out, i.Id)
				}
				return nil
			}
			return table(out, resp.Images, digests, full)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "json, or empty for a table")
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "print IDs only")
	cmd.Flags().BoolVar(&digests, "digests", false, "show digests")
	cmd.Flags().BoolVar(&full, "no-trunc", false, "show whole IDs and digests")
	return cmd
}

// table prints a line for each name of each image.
func table(out io.Writer, images []*runtimeapi.Image, digests, full bool) error {
	var rows [][]string
	for _, i := range images {
		for _, n := range rowNames(i) {
			row := []string{n[0], n[1]}
			if digests {
				row = append(row, short(n[2], full))
			}
			row = append(row, short(i.Id, full), size(i.Size))
			if i.Pinned {
				row = append(row, "pinned")
			}
			rows = append(rows, row)
		}
	}
	slices.SortFunc(rows, slices.Compare)
	w := tabwriter.NewWriter(out, 0, 8, 3, ' ', 0)
	head := "IMAGE\tTAG\tIMAGE ID\tSIZE\n"
	if digests {
		head = "IMAGE\tTAG\tDIGEST\tIMAGE ID\tSIZE\n"
	}
	fmt.Fprint(w, head)
	for _, r := range rows {
		fmt.Fprintln(w, strings.Join(r, "\t"))
	}
	return w.Flush()
}

// rowNames are repository, tag and digest of each line of an image.
func rowNames(i *runtimeapi.Image) [][3]string {
	digestOf := map[string]string{}
	for _, d := range i.RepoDigests {
		if repo, digest, ok := strings.Cut(d, "@"); ok {
			digestOf[repo] = digest
		}
	}
	const none = "<none>"
	var out [][3]string
	for _, t := range i.RepoTags {
		at := strings.LastIndexByte(t, ':')
		repo, digest := t[:at], none
		if d, ok := digestOf[repo]; ok {
			digest = d
			delete(digestOf, repo)
		}
		out = append(out, [3]string{repo, t[at+1:], digest})
	}
	if len(out) == 0 {
		for repo, d := range digestOf {
			out = append(out, [3]string{repo, none, d})
		}
	}
	if len(out) == 0 {
		out = append(out, [3]string{none, none, none})
	}
	return out
}

// short is the usual beginning of a digest.
func short(digest string, full bool) string {
	digest = strings.TrimPrefix(digest, "sha256:")
	if full || len(digest) < 13 {
		return digest
	}
	return digest[:13]
}

// size is a number of bytes for people, in powers of 1000.
func size(bytes uint64) string {
	value, unit := float64(bytes), "B"
	for _, u := range []string{"kB", "MB", "GB", "TB"} {
		if value < 1000 {
			break
		}
		value, unit = value/1000, u
	}
	return fmt.Sprintf("%.4g%s", value, unit)
}

// inspect is "inspect".
func inspect(t *target) *cobra.Command {
	return &cobra.Command{
		Use:   "inspect NAME|ID…",
		Short: "Show everything about images, as JSON",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, done, err := t.cri()
			if err != nil {
				return err
			}
			defer done()
			for _, name := range args {
				resp, err := client.ImageStatus(cmd.Context(), &runtimeapi.ImageStatusRequest{Image: &runtimeapi.ImageSpec{Image: name}, Verbose: true})
				if err != nil {
					return plain(err)
				}
				if resp.Image == nil {
					return notFound(name)
				}
				if err := printStatus(cmd.OutOrStdout(), resp); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// notFound says that there is no such image, or no such name.
func notFound(name string) error {
	if !isID(name) {
		if err := checkName(name); err != nil {
			return err
		}
	}
	return fmt.Errorf("image %q: not found (peri image ls shows what is there)", name)
}

func printStatus(out io.Writer, resp *runtimeapi.ImageStatusResponse) error {
	raw, err := protojson.Marshal(resp.Image)
	if err != nil {
		return err
	}
	v := map[string]json.RawMessage{"status": raw}
	for key, value := range resp.Info {
		if json.Valid([]byte(value)) {
			v[key] = json.RawMessage(value)
		}
	}
	return printJSON(out, v)
}

// printJSON prints indented JSON.
func printJSON(out io.Writer, v any) error {
	if m, ok := v.(*runtimeapi.ListImagesResponse); ok {
		raw, err := protojson.MarshalOptions{EmitUnpopulated: true}.Marshal(m)
		if err != nil {
			return err
		}
		v = json.RawMessage(raw) // protojson's own indentation is random on purpose
	}
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
