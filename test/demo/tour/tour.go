package tour

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/sync/errgroup"

	"github.com/periplus/periplus/lab"
	"github.com/periplus/periplus/test/images"
	"github.com/periplus/periplus/test/images/registry"
	"github.com/periplus/periplus/test/netlab"
)

//go:embed manifests
var manifests embed.FS

var (
	// ErrStage is returned when a stage has failed; why has been printed.
	ErrStage = errors.New("a stage of the tour failed")
	// ErrLeft is wrapped when the machines could not be taken away.
	ErrLeft = errors.New("something of the tour is left behind")
)

// The machines, with their addresses. Those that begin a cluster are nodes; outside
// stands beside it.
const (
	server  = "server"
	one     = "one"
	two     = "two"
	outside = "outside"
)

var addresses = map[string]string{server: "198.51.100.10", one: "198.51.100.11", two: "198.51.100.12", outside: "198.51.100.13"}

// hosts are the names that people use: each has the addresses of all nodes.
var hosts = []string{"api.example.com", "shop.example.com"}

// A Config says what is shown, and where.
type Config struct {
	Peri  string // the binary
	Out   io.Writer
	Color bool
}

// A tour is the machines and what runs on them.
type tour struct {
	Config
	started  time.Time
	segment  *lab.Segment
	machines map[string]*netlab.Machine
	images   *registry.Registry
	pushing  errgroup.Group // fills the registry

	mu      sync.Mutex // guards running while agents start
	running map[string]*netlab.Peri

	// ran is when "peri run" was typed, first when the first answer came.
	ran, first time.Time
}

// Run makes the tour and takes everything away again, also when ctx ends.
func Run(ctx context.Context, c Config) (err error) {
	if os.Geteuid() != 0 {
		return errors.New("it needs root, to make namespaces and containers: sudo make demo")
	}
	if c.Peri, err = filepath.Abs(c.Peri); err != nil {
		return err
	}
	if _, err := os.Stat(c.Peri); err != nil {
		return fmt.Errorf("the binary to show: %w (make build)", err)
	}
	t := &tour{Config: c, started: time.Now(), machines: map[string]*netlab.Machine{}, running: map[string]*netlab.Peri{}}
	defer func() {
		if closed := t.close(); closed != nil {
			err = errors.Join(err, fmt.Errorf("%w: %w", ErrLeft, closed))
		}
	}()
	t.print("%s\n", t.bold("Periplus: the grand tour"))
	for i, s := range stages {
		t.heading(i+1, s.title)
		err := s.run(t, ctx)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			t.failed(ctx, i+1, s, err)
			return ErrStage
		}
	}
	t.print("\n%s\n", t.bold(fmt.Sprintf("%d stages, all as they should be, in %.1f s.", len(stages), time.Since(t.started).Seconds())))
	return nil
}

// boot makes the machines and the registry with its images.
func (t *tour) boot(ctx context.Context) error {
	var err error
	if t.segment, err = netlab.NewSegment(); err != nil {
		return err
	}
	var names strings.Builder
	for _, node := range []string{server, one, two} {
		fmt.Fprintf(&names, "%s %s %s\n", addresses[node], node, strings.Join(hosts, " "))
	}
	for _, name := range []string{outside, server, one, two} {
		c := netlab.Config{
			Peri: t.Peri, Name: name, Address: addresses[name], Segment: t.segment,
			// What a person would write into /etc/periplus/config.yaml.
			Flags: []string{"--registry-mirror", "docker.io=http://" + addresses[outside] + ":5000"},
		}
		if name == outside {
			c.Hosts = names.String()
		}
		if t.machines[name], err = netlab.New(c); err != nil {
			delete(t.machines, name)
			return err
		}
		if err := t.furnish(ctx, t.machines[name]); err != nil {
			return err
		}
	}
	l, err := t.machines[outside].Listen(ctx, "tcp", addresses[outside]+":5000")
	if err != nil {
		return err
	}
	t.images = registry.Serve(l)
	t.pushing.Go(func() error { return t.push(ctx) })
	return nil
}

// push makes the images, of Debian's packages, and fills the registry, while the
// cluster starts.
func (t *tour) push(ctx context.Context) error {
	nginx, err := images.Nginx(ctx)
	if err != nil {
		return err
	}
	busybox, err := images.Busybox()
	if err != nil {
		return err
	}
	for tag, img := range map[string]v1.Image{"library/nginx:latest": nginx, "library/busybox:latest": busybox} {
		if _, err := t.images.Push(ctx, tag, img); err != nil {
			return err
		}
	}
	return nil
}

// writtenFor is the release whose image the manifests name.
const writtenFor = "periplus.io/peri:v0.1.0"

// furnish gives a machine the commands peri and kubectl, and the manifests as the
// directory in which commands are typed.
func (t *tour) furnish(ctx context.Context, m *netlab.Machine) error {
	bin, home := filepath.Join(m.Dir(), "bin"), filepath.Join(m.Dir(), "home")
	for _, dir := range []string{bin, home} {
		if err := os.Mkdir(dir, 0o755); err != nil { //nolint:gosec // programs and manifests
			return err
		}
	}
	for _, name := range []string{"peri", "kubectl"} {
		if err := os.Symlink(t.Peri, filepath.Join(bin, name)); err != nil {
			return err
		}
	}
	version, err := m.Output(ctx, "peri", "version")
	if err != nil {
		return err
	}
	f := strings.Fields(version) // peri v0.1.0 (…
	if len(f) < 2 {
		return fmt.Errorf("not a version: %q", version)
	}
	files, err := manifests.ReadDir("manifests")
	if err != nil {
		return err
	}
	for _, file := range files {
		data, err := manifests.ReadFile("manifests/" + file.Name())
		if err != nil {
			return err
		}
		data = bytes.ReplaceAll(data, []byte(writtenFor), []byte("periplus.io/peri:"+f[1]))
		if err := os.WriteFile(filepath.Join(home, file.Name()), data, 0o644); err != nil { //nolint:gosec // manifests
			return err
		}
	}
	return nil
}

// close ends all machines, with whatever is left in them.
func (t *tour) close() error {
	var errs []error
	for _, name := range []string{one, two, server, outside} {
		if m := t.machines[name]; m != nil {
			errs = append(errs, m.Close())
		}
	}
	_ = t.pushing.Wait() // a stage has told
	if t.images != nil {
		_ = t.images.Close() // its listener went with the machine
	}
	if t.segment != nil {
		errs = append(errs, t.segment.Close())
	}
	return errors.Join(errs...)
}

// failed tells which stage failed and shows what there is to know about it.
func (t *tour) failed(ctx context.Context, number int, s stage, err error) {
	t.print("\n%s\n%s\n", t.red(fmt.Sprintf("✗ Stage %d failed: %s", number, s.title)), indent(err.Error()))
	ctx, cancel := context.WithTimeout(ctx, evidenceTimeout)
	defer cancel()
	for _, line := range slices.Concat(s.evidence, []string{"kubectl get pods -A -o wide", "kubectl get events -A --sort-by=.lastTimestamp | tail -n 20"}) {
		if t.running[server] == nil {
			break // nobody would answer
		}
		_, _ = t.typed(ctx, server, line) // it is shown, whatever it is
	}
	for _, name := range []string{server, one, two} {
		if p := t.running[name]; p != nil {
			t.print("\nThe log of %s ends with\n%s\n", name, indent(p.Tail(15)))
		}
	}
}

// evidenceTimeout bounds how long evidence is looked for.
const evidenceTimeout = 30 * time.Second
