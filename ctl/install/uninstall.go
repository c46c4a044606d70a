package install

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/periplus/periplus/app"
)

// NewUninstall returns the command.
func NewUninstall() *cobra.Command {
	m := machine{}
	purge := false
	cmd := &cobra.Command{
		Use:   "uninstall",
		Short: "take away what peri install has made: nothing is left",
		Long: `Stop peri and all its containers and take away what "peri install" has made: unit,
binary, configuration. The state (objects, images, volumes) stays unless --purge is
given: a later installation finds the cluster as it was.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return m.uninstall(cmd.Context(), purge, cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&m.root, "root", "", "take the files from below this directory and stop nothing")
	cmd.Flags().BoolVar(&purge, "purge", false, "also delete the state and the manifests in "+dropInDir)
	return cmd
}

func (m machine) uninstall(ctx context.Context, purge bool, out io.Writer) error {
	if !m.staged() && os.Geteuid() != 0 {
		return errors.New("peri uninstall needs root: run it with sudo")
	}
	r, err := m.record()
	if err != nil {
		return err
	}
	if r == nil {
		return fmt.Errorf("nothing is installed here: there is no %s", m.at(recordFile))
	}
	c := app.Defaults()
	if _, err := os.Stat(m.at(configFile)); err == nil {
		if err := c.Load(m.at(configFile)); err != nil {
			return err
		}
	}
	if err := c.Complete(); err != nil {
		return err
	}
	if !m.staged() {
		if err := stop(ctx, &c, purge, out); err != nil {
			return err
		}
	}
	var errs []error
	gone := func(path string) {
		switch err := os.Remove(m.at(path)); {
		case err == nil:
			fmt.Fprintln(out, "removed", m.at(path))
		case !errors.Is(err, fs.ErrNotExist):
			errs = append(errs, err)
		}
	}
	for _, path := range r.Files {
		gone(path)
	}
	for name, target := range r.Links {
		if have, err := os.Readlink(m.at(name)); err == nil && have == target {
			gone(name) // else it is somebody else's by now
		}
	}
	if c.Kubeconfig == app.Defaults().Kubeconfig {
		gone(c.Kubeconfig)
	}
	if purge {
		errs = append(errs, os.RemoveAll(m.at(dropInDir)))
		if m.staged() {
			errs = append(errs, os.RemoveAll(m.at(c.StateDir)))
		}
	}
	if len(errs) == 0 || errors.Join(errs...) == nil {
		gone(recordFile) // last: what failed can be tried again
	}
	errs = append(errs, m.tidy(out))
	if !m.staged() && noSystemd() == "" {
		errs = append(errs, systemctl(ctx, "daemon-reload"))
	}
	if _, err := os.Stat(m.at(c.StateDir)); err == nil && !purge {
		fmt.Fprintf(out, "The state in %s is kept: --purge deletes it.\n", m.at(c.StateDir))
	}
	return errors.Join(errs...)
}

// tidy removes the directories, if nothing of anybody is in them.
func (m machine) tidy(out io.Writer) error {
	for _, dir := range []string{dropInDir, configDir} {
		err := os.Remove(m.at(dir))
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			continue
		}
		entries, readErr := os.ReadDir(m.at(dir))
		if readErr != nil || len(entries) == 0 {
			return err
		}
		fmt.Fprintf(out, "%s is kept: there is %s in it.\n", m.at(dir), filepath.Join(m.at(dir), entries[0].Name()))
		break // and so are those above
	}
	return nil
}

// stop ends the service, the containers and what peri has made in the kernel.
func stop(ctx context.Context, c *app.Config, purge bool, out io.Writer) error {
	if noSystemd() == "" {
		if err := systemctl(ctx, "disable", "--now", unitName); err != nil {
			return err
		}
	}
	if _, err := os.Stat(c.StateDir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return app.Down(ctx, c, app.DownOptions{Purge: purge, Out: out})
}
