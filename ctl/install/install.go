package install

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/periplus/periplus/app"
	"github.com/periplus/periplus/containers"
)

// Roles of a machine.
const (
	roleServer = "server"
	roleAgent  = "agent"
)

type options struct {
	machine
	role    string
	bin     string
	kubectl bool
	noStart bool
	server  string
	token   string
	out     io.Writer
}

// own are the flags that are not settings.
var own = []string{"root", "bin-dir", "kubectl", "no-start", "token", "server"}

// New returns the command.
func New() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "install server|agent",
		Short: "install peri on this machine: binary, configuration, systemd unit",
		Long: `Install peri on this machine and start it: the binary is copied, the flags given here
become the configuration file /etc/periplus/config.yaml, and a systemd unit runs it.

Doing it again upgrades: containers go on while peri is replaced. Settings that are
not named stay as they are. "peri uninstall" takes all of it away.`,
	}
	cmd.AddCommand(role(roleServer, "a server, with a node of its own"), role(roleAgent, "a node of a cluster whose server is another machine"))
	return cmd
}

func role(name, short string) *cobra.Command {
	o := &options{role: name, bin: defaultBin}
	c := app.Defaults()
	cmd := &cobra.Command{
		Use: name, Short: short, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.out = cmd.OutOrStdout()
			return o.run(cmd)
		},
	}
	f := cmd.Flags()
	c.Flags(f)
	f.StringVar(&o.root, "root", "", "put the files below this directory and start nothing")
	f.StringVar(&o.bin, "bin-dir", o.bin, "where the binary goes")
	f.BoolVar(&o.kubectl, "kubectl", false, "also make kubectl, as a link to peri")
	f.BoolVar(&o.noStart, "no-start", false, "do not start it now, nor when the machine starts")
	if name == roleAgent {
		f.StringVar(&o.server, "server", "", "a server of the cluster, https://HOST:6443")
		f.StringVar(&o.token, "token", "", `join token, or "@" and a file that holds it`)
	} else {
		f.BoolVar(&c.DisableAgent, "disable-agent", false, "run no pods on this machine")
	}
	return cmd
}

func (o *options) run(cmd *cobra.Command) error {
	if !o.staged() && os.Geteuid() != 0 {
		return errors.New("peri install needs root: run it with sudo, or give --root")
	}
	before, err := o.record()
	if err != nil {
		return err
	}
	if before != nil && before.Role != o.role {
		return fmt.Errorf("this machine has been installed as %s: run \"peri uninstall\" before it becomes %s", before.Role, o.role)
	}
	// All is checked before anything is written.
	config, err := o.settings(cmd)
	if err != nil {
		return err
	}
	r := &record{Role: o.role, Links: map[string]string{}}
	if before != nil { // what an earlier installation has made is taken away too
		r.Files = before.Files
		maps.Copy(r.Links, before.Links)
	}
	binary := filepath.Join(o.bin, "peri")
	r.note(binary, configFile, unitFile)
	if o.token != "" {
		r.note(tokenFile)
	}
	if o.kubectl {
		name := filepath.Join(o.bin, "kubectl")
		if err := o.mayLink(name); err != nil {
			return err
		}
		r.Links[name] = "peri"
	}
	if err := o.save(r); err != nil { // first: what is half done can be taken away
		return err
	}
	changed, err := o.files(r, binary, config)
	if err != nil {
		return err
	}
	if err := containers.CheckOCIRuntime(""); err != nil {
		fmt.Fprintf(o.out, "Missing: %v. Install crun or runc before it is started.\n", err)
	}
	return o.start(cmd, binary, changed)
}

func (r *record) note(paths ...string) {
	for _, p := range paths {
		if !slices.Contains(r.Files, p) {
			r.Files = append(r.Files, p)
		}
	}
}

// settings merges the flags into the configuration that is there.
func (o *options) settings(cmd *cobra.Command) ([]byte, error) {
	s, err := readSettings(o.at(configFile))
	if err != nil {
		return nil, err
	}
	if err := s.take(cmd.Flags(), own); err != nil {
		return nil, err
	}
	if o.role == roleAgent {
		if o.server != "" {
			s["server"] = o.server
		}
		if o.token != "" {
			s["token"] = "@" + tokenFile // not where everybody reads the settings
		}
		if s["server"] == nil || s["token"] == nil {
			return nil, errors.New("an agent needs --server and --token: \"peri token create --print-join-command\" prints them on a server")
		}
	}
	return s.text()
}

func (o *options) mayLink(name string) error {
	have, err := os.Readlink(o.at(name))
	if err == nil && have == "peri" {
		return nil
	}
	if _, err := os.Lstat(o.at(name)); err == nil {
		return fmt.Errorf("%s is there already: remove it, or install without --kubectl", name)
	}
	return nil
}

// files writes everything; changed says whether a running peri is an old one now.
func (o *options) files(r *record, binary string, config []byte) (changed bool, err error) {
	done := func(path string, mode os.FileMode, data []byte) error {
		wrote, err := o.write(path, data, mode)
		changed = changed || wrote
		if wrote {
			fmt.Fprintln(o.out, "wrote", o.at(path))
		}
		return err
	}
	wrote, err := copyBinary(self, o.at(binary))
	if err != nil {
		return false, err
	}
	if wrote {
		changed = true
		fmt.Fprintln(o.out, "wrote", o.at(binary))
	}
	if o.token != "" {
		token, err := readToken(o.token)
		if err != nil {
			return false, err
		}
		if err := done(tokenFile, 0o600, []byte(token+"\n")); err != nil {
			return false, err
		}
	}
	if err := done(configFile, 0o600, config); err != nil {
		return false, err
	}
	if err := done(unitFile, 0o644, []byte(unit(o.role, binary))); err != nil {
		return false, err
	}
	for name, target := range r.Links {
		if err := link(target, o.at(name)); err != nil {
			return false, err
		}
	}
	if o.role == roleServer {
		err = os.MkdirAll(o.at(dropInDir), 0o755) //nolint:gosec // people drop files here
	}
	return changed, err
}

// readToken returns the token itself.
func readToken(s string) (string, error) {
	path, ok := strings.CutPrefix(s, "@")
	if !ok {
		return s, nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("--token: %w", err)
	}
	return strings.TrimSpace(string(data)), nil
}

// start lets systemd run it, or says what is missing.
func (o *options) start(cmd *cobra.Command, binary string, changed bool) error {
	if o.staged() {
		fmt.Fprintf(o.out, "Installed below %s; nothing was started.\n", o.root)
		return nil
	}
	missing := noSystemd()
	if o.noStart || missing != "" {
		if missing != "" {
			fmt.Fprintf(o.out, "Missing: %s: nothing starts peri with the machine.\n", missing)
		}
		fmt.Fprintf(o.out, "Installed. Start it with: %s %s --config %s\n", binary, o.role, configFile)
		return nil
	}
	ctx := cmd.Context()
	if err := systemctl(ctx, "daemon-reload"); err != nil {
		return err
	}
	if err := systemctl(ctx, "enable", unitName); err != nil {
		return err
	}
	verb := "start"
	if changed {
		verb = "restart" // containers go on meanwhile
	}
	if err := systemctl(ctx, verb, unitName); err != nil {
		return fmt.Errorf("%w; see: journalctl -u %s", err, unitName)
	}
	fmt.Fprintf(o.out, "Installed and running: systemctl status %s\n", strings.TrimSuffix(unitName, ".service"))
	if o.role == roleServer {
		fmt.Fprintf(o.out, "export KUBECONFIG=%s\n", app.Defaults().Kubeconfig)
	}
	return nil
}
