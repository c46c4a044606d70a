package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/periplus/periplus/test/images"
	"github.com/periplus/periplus/test/images/registry"
	"github.com/periplus/periplus/test/netlab"
)

// limit bounds the whole demonstration.
const limit = 5 * time.Minute

func main() {
	peri := flag.String("peri", "bin/peri", "the binary to show")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if err := run(ctx, *peri); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, peri string) (err error) {
	if os.Geteuid() != 0 {
		return errors.New("it needs root, to make namespaces and containers: sudo make demo")
	}
	if peri, err = filepath.Abs(peri); err != nil {
		return err
	}
	say("A machine of its own: network, mounts, processes, host name. No packet gets out.")
	m, err := netlab.New(netlab.Config{Peri: peri, Name: "harbour"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()

	say("A registry in it, and an nginx image made of Debian's packages.")
	l, err := m.Listen(ctx, "tcp", "127.0.0.1:5000")
	if err != nil {
		return err
	}
	r := registry.Serve(l)
	defer r.Close()
	nginx, err := images.Nginx(ctx)
	if err != nil {
		return err
	}
	image, err := r.Push(ctx, "nginx:latest", nginx)
	if err != nil {
		return err
	}
	fmt.Println("pushed", image)

	d := &demo{ctx: ctx, machine: m}
	if err := d.voyage(image); err != nil {
		return err
	}
	return d.leave()
}

func say(text string) { fmt.Printf("\n\033[1m# %s\033[0m\n", text) }

// A demo types commands and shows what they answer.
type demo struct {
	ctx     context.Context //nolint:containedctx // one for the whole show
	machine *netlab.Machine
	peri    *netlab.Peri
	err     error // the first failure; nothing is typed after it
}

// typed runs a command line as a person would and shows it.
func (d *demo) typed(line string) string {
	if d.err != nil {
		return ""
	}
	fmt.Println("$ " + line)
	args := strings.Fields(line)
	out, err := d.machine.Output(d.ctx, args[0], args[1:]...)
	fmt.Print(out)
	if out != "" && !strings.HasSuffix(out, "\n") {
		fmt.Println()
	}
	if err != nil {
		d.err = err
	}
	return strings.TrimSpace(out)
}

// until watches a command's output for a line with all the words.
func (d *demo) until(line string, words ...string) {
	if d.err != nil {
		return
	}
	fmt.Println("$ " + line)
	found, err := d.machine.Watch(d.ctx, func(l string) bool {
		for _, w := range words {
			if !strings.Contains(l, w) {
				return false
			}
		}
		return true
	}, strings.Fields(line)...)
	if err != nil {
		d.err = err
		return
	}
	fmt.Println(found)
}

func (d *demo) voyage(image string) error {
	say("The cluster: API server, etcd, controllers, scheduler, kubelet, runtime, proxy, DNS in one process.")
	var err error
	fmt.Println("$ peri up")
	if d.peri, err = d.machine.Up(d.ctx); err != nil {
		return err
	}
	fmt.Println(d.peri.Progress())
	d.typed("kubectl get nodes -o wide")

	say("The binary is an image: a web server without pulling anything.")
	self := d.typed("kubectl get nodes -o jsonpath={.items[0].status.images[*].names}")
	if d.err == nil {
		self = selfImage(self)
	}
	d.typed("peri run hello --image=" + self + " --port=8080 --expose -- web")
	d.typed("kubectl rollout status deployment/hello --timeout=60s")
	d.answer("hello", ":8080")

	say("A real nginx: pulled, three replicas, a Service in front.")
	d.typed("peri run web --image=" + image + " --port=80 --expose --replicas=3")
	d.typed("kubectl rollout status deployment/web --timeout=90s")
	d.answer("web", "")
	d.typed("kubectl get pods,svc,endpointslices -o wide")

	say("A pod that fits nowhere says why.")
	d.typed("peri run huge --image=" + image + " --requests=cpu=1000")
	d.until("kubectl get events --watch", "FailedScheduling", "pod/huge-")

	say("So does an image that cannot be had.")
	d.typed("peri run missing --image=127.0.0.1:5000/missing:1")
	d.until("kubectl get pods --watch -l app=missing", "ImagePullBackOff")
	d.until("kubectl get events --watch", "Failed", "pod/missing-", "pull")

	say("The log of the voyage, from the request to the first answered request.")
	d.typed("peri trace deployment/web")
	return d.err
}

// answer waits until the Service answers.
func (d *demo) answer(service, port string) {
	ip := d.typed("kubectl get service " + service + " -o jsonpath={.spec.clusterIP}")
	d.typed("curl -sS --fail --max-time 5 --retry 30 --retry-all-errors --retry-delay 1 http://" + ip + port + "/")
}

// leave ends the cluster and checks that the machine is as it was.
func (d *demo) leave() error {
	say("Everything ends, and nothing stays behind.")
	if err := d.peri.Stop(d.ctx); err != nil {
		return err
	}
	fmt.Println("$ peri down --purge")
	if err := d.machine.Down(d.ctx); err != nil {
		return err
	}
	left, err := d.machine.Leftovers(d.ctx)
	if err != nil {
		return err
	}
	if len(left) > 0 {
		return fmt.Errorf("left behind:\n  %s", strings.Join(left, "\n  "))
	}
	fmt.Println("no process, mount, interface, rule, cgroup or file is left")
	return nil
}

// selfImage finds the binary's own image among names printed as JSON lists.
func selfImage(names string) string {
	for _, n := range strings.FieldsFunc(names, func(r rune) bool { return strings.ContainsRune(`[]", `, r) }) {
		if strings.HasPrefix(n, "periplus.io/peri:") {
			return n
		}
	}
	return "periplus.io/peri"
}
