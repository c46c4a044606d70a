package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/rogpeppe/go-internal/testscript"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/periplus/periplus/lab"
	"github.com/periplus/periplus/test/images"
	"github.com/periplus/periplus/test/images/registry"
	"github.com/periplus/periplus/test/netlab"
)

// startTimeout bounds a start on a machine that is busy with other tests.
const startTimeout = 90 * time.Second

const nodeName = "node"

// builtImages are made once a test process.
var builtImages = sync.OnceValues(func() (map[string]v1.Image, error) {
	busybox, err := images.Busybox()
	if err != nil {
		return nil, err
	}
	nginx, err := images.Nginx(context.Background())
	if err != nil {
		return nil, err
	}
	redis, err := images.Redis(context.Background())
	if err != nil {
		return nil, err
	}
	admission, err := images.Program(context.Background(), "test/images/admission")
	if err != nil {
		return nil, err
	}
	module, err := images.Module(context.Background(), "test/images/module")
	if err != nil {
		return nil, err
	}
	return map[string]v1.Image{"admission:1": admission, "module:1": module, "busybox:1": busybox, "nginx:1": nginx, "redis:1": redis}, nil
})

// A node is a machine with a registry in it and, once started, a cluster.
type node struct {
	once    sync.Once // for the shared one
	err     error
	machine *netlab.Machine
	images  *registry.Registry
	up      *netlab.Peri
	daemons map[string]*netlab.Peri
	// others are the further machines of a lab, by name; segment connects them.
	others  map[string]*node
	segment *lab.Segment
}

// open makes the machine and its registry.
func (n *node) open(peri string, flags []string) error {
	return n.boot(netlab.Config{Peri: peri, Name: nodeName, Flags: flags})
}

func (n *node) boot(c netlab.Config) error {
	m, err := netlab.New(c)
	if err != nil {
		return err
	}
	n.machine, n.daemons = m, map[string]*netlab.Peri{}
	return n.serveImages()
}

func (n *node) serveImages() error {
	l, err := n.machine.Listen(context.Background(), "tcp", "127.0.0.1:5000")
	if err != nil {
		return err
	}
	n.images = registry.Serve(l)
	built, err := builtImages()
	if err != nil {
		return err
	}
	for tag, img := range built {
		if _, err := n.images.Push(context.Background(), tag, img); err != nil {
			return err
		}
	}
	return nil
}

// start runs "peri up" and waits for the node.
func (n *node) start(flags ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	p, err := n.machine.Up(ctx, flags...)
	n.up = p
	return err
}

// close ends the machine whatever runs in it.
func (n *node) close() error {
	if n.machine == nil {
		return nil
	}
	var errs []error
	for _, o := range n.others {
		errs = append(errs, o.close())
	}
	errs = append(errs, n.machine.Close())
	if n.images != nil {
		_ = n.images.Close() // its listener went with the machine
	}
	if n.segment != nil {
		errs = append(errs, n.segment.Close())
	}
	return errors.Join(errs...)
}

// inside are the programs that scripts run in the machine.
var inside = []string{"peri", "kubectl", "curl", "sh", "ip", "nft", "iptables-save", "busybox"}

// An environment is a script's, before it runs and while it does.
type environment interface {
	Getenv(name string) string
	Setenv(name, value string)
}

// variables are what scripts get.
func (n *node) variables(e environment) error {
	work := e.Getenv("WORK")
	bin := filepath.Join(work, ".bin")
	if err := os.Mkdir(bin, 0o755); err != nil { //nolint:gosec // programs
		return err
	}
	programs := inside
	if _, err := exec.LookPath("helm"); err == nil { // make e2e builds it (test/helm)
		programs = append(slices.Clone(programs), "helm")
	}
	if err := n.machine.WriteCommands(bin, programs...); err != nil {
		return err
	}
	for k, v := range n.env() {
		e.Setenv(k, v)
	}
	e.Setenv("PATH", bin+":"+e.Getenv("PATH"))
	e.Setenv("HOME", work)
	return nil
}

func (n *node) env() map[string]string {
	return map[string]string{
		"PERI": n.machine.Peri(), "REGISTRY": n.images.Address(), "REDIS": n.images.Address() + "/redis:1", "BUSYBOX": n.images.Address() + "/busybox:1", "NGINX": n.images.Address() + "/nginx:1", "ADMISSION": n.images.Address() + "/admission:1", "MODULE": n.images.Address() + "/module:1",
		"NODE": nodeName, "NODE_IP": netlab.Address, "STATE": n.machine.StateDir(), "CGROUP": n.machine.CgroupRoot(), "RUN": n.machine.RunDir(), "KUBECONFIG": n.machine.Kubeconfig(),
	}
}

var notLabel = regexp.MustCompile(`[^a-z0-9-]+`)

// namespace starts the shared cluster for the first script and gives each one a
// namespace, which is the default of its kubeconfig.
func (n *node) namespace(e *testscript.Env, peri, script string) error {
	n.once.Do(func() {
		if n.err = n.open(peri, nil); n.err == nil {
			n.err = n.start()
		}
	})
	if n.err != nil {
		return n.err
	}
	if err := n.variables(e); err != nil {
		return err
	}
	ns := strings.Trim(notLabel.ReplaceAllString(strings.ToLower(script), "-"), "-")
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	if _, err := n.machine.Output(ctx, "kubectl", "create", "namespace", ns); err != nil {
		return err
	}
	config, err := clientcmd.LoadFromFile(n.machine.Kubeconfig())
	if err != nil {
		return err
	}
	config.Contexts[config.CurrentContext].Namespace = ns
	path := filepath.Join(e.WorkDir, ".kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return err
	}
	e.Setenv("KUBECONFIG", path)
	e.Setenv("NS", ns)
	n.report(e, ns)
	e.Defer(func() {
		// What a script started must not burden the others; the answer is not awaited.
		_, _ = n.machine.Output(context.Background(), "kubectl", "delete", "namespace", ns, "--wait=false")
	})
	return nil
}

// report adds the state of the cluster to the output of a script that failed;
// without a namespace, of all of them.
func (n *node) report(e *testscript.Env, ns string) {
	t, ok := e.T().(testing.TB)
	if !ok {
		return
	}
	e.Defer(func() {
		if !t.Failed() {
			return
		}
		where := []string{"--request-timeout=5s", "-n", ns}
		if ns == "" {
			where = []string{"--request-timeout=5s", "-A"}
		}
		for _, args := range [][]string{{"get", "pods,services,endpointslices", "-o", "wide"}, {"get", "events"}} {
			if n.up == nil {
				break
			}
			out, err := n.machine.Output(context.Background(), "kubectl", append(args, where...)...)
			t.Logf("kubectl %s\n%s%v", strings.Join(args, " "), out, err)
		}
		if n.up != nil {
			t.Logf("peri's log:\n%s", n.up.Tail(40))
		}
	})
}

// end stops the shared cluster as a person does and checks that nothing is left.
func (n *node) end(t *testing.T) {
	if n.machine == nil {
		return
	}
	defer func() {
		if err := n.close(); err != nil {
			t.Error(err)
		}
	}()
	if n.up == nil || n.err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	if err := n.up.Stop(ctx); err != nil {
		t.Error(err)
		return
	}
	if err := n.down(ctx); err != nil {
		t.Error(err)
	}
}

func (n *node) down(ctx context.Context) error {
	for _, o := range n.others {
		if err := o.down(ctx); err != nil {
			return err
		}
	}
	if _, err := os.Stat(n.machine.StateDir()); errors.Is(err, os.ErrNotExist) {
		return nil // no peri ever ran here
	}
	if err := n.machine.Down(ctx); err != nil {
		return err
	}
	left, err := n.machine.Leftovers(ctx)
	if err != nil {
		return err
	}
	if len(left) > 0 {
		return fmt.Errorf("peri down --purge left behind:\n  %s", strings.Join(left, "\n  "))
	}
	return nil
}
