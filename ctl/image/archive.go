package image

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
)

// importArchive is "import".
func importArchive(t *target) *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:   "import FILE…",
		Short: "Take in image archives (docker save, OCI layout; plain, gzip or zstd; - is standard input)",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if name != "" {
				if err := checkName(name); err != nil {
					return err
				}
				if len(args) > 1 {
					return errors.New("--name is for one archive")
				}
			}
			client, err := t.archives()
			if err != nil {
				return err
			}
			for _, path := range args {
				in := cmd.InOrStdin()
				if path != "-" {
					f, err := os.Open(path)
					if err != nil {
						return err
					}
					defer f.Close()
					in = f
				}
				got, err := client.Import(cmd.Context(), in, name)
				if err != nil {
					return fmt.Errorf("%s: %w", path, err)
				}
				for _, i := range got {
					names := i.RepoTags
					if len(names) == 0 {
						names = []string{"<none>"}
					}
					for _, n := range names {
						fmt.Fprintf(cmd.OutOrStdout(), "%s %s\n", n, i.ID)
					}
				}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "name for an image that the archive has no name for")
	return cmd
}

// exportArchive is "export".
func exportArchive(t *target) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "export NAME|ID… -o FILE",
		Short: "Write images to an archive that peri, docker and containerd can read",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if output == "" {
				return errors.New("--output is required (- is standard output)")
			}
			client, err := t.archives()
			if err != nil {
				return err
			}
			if output == "-" {
				return client.Export(cmd.Context(), cmd.OutOrStdout(), args...)
			}
			return writeWhole(output, func(w io.Writer) error { return client.Export(cmd.Context(), w, args...) })
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "the archive; - is standard output")
	return cmd
}

// writeWhole makes a file that is there completely or not at all.
func writeWhole(path string, write func(io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	err = write(f)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
