package crash

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/periplus/periplus/test/images"
	"github.com/periplus/periplus/test/images/registry"
	"github.com/periplus/periplus/test/netlab"
)

var (
	rounds = flag.Int("rounds", 20, "how often peri is killed")
	seed   = flag.Uint64("seed", 0, "repeats the choices of an earlier run; 0: others every time")
)

const (
	// startTimeout and settleTimeout bound what never takes that long.
	startTimeout  = 60 * time.Second
	settleTimeout = 60 * time.Second
	// mostAnswers is the largest number of answers between a start and a kill.
	mostAnswers = 600
	// slowestStart: a kill while peri starts comes within this time.
	slowestStart = 500 * time.Millisecond

	steadyReplicas = 4
)

// binary is the peri under test: $PERI, else what make build leaves.
func binary(t *testing.T) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: runs containers")
	}
	path := os.Getenv("PERI")
	if path == "" {
		path = filepath.Join("..", "..", "bin", "peri")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Skipf("needs the binary: make build (%v)", err)
	}
	return path
}

// A voyage is one test run.
type voyage struct {
	t       *testing.T
	random  *rand.Rand
	machine *netlab.Machine
	up      *netlab.Peri
	image   string
	ledger  *ledger
	steady  map[string]running // what runs from the beginning to the end
}

func TestKill(t *testing.T) {
	peri := binary(t)
	klog.SetLogger(logr.Discard()) // the clients complain of connections that break
	if *seed == 0 {
		*seed = rand.Uint64() //nolint:gosec // not a secret
	}
	t.Logf("repeat with -seed %d", *seed)
	m, err := netlab.New(netlab.Config{Peri: peri})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}()
	v := &voyage{t: t, random: rand.New(rand.NewPCG(*seed, 0)), machine: m, ledger: newLedger()} //nolint:gosec // not a secret
	if err := v.sail(); err != nil {
		log := ""
		if v.up != nil {
			log = v.up.Tail(60)
		}
		t.Fatalf("%v\n\nthe log of peri:\n%s", err, log)
	}
}

func (v *voyage) sail() error {
	if err := v.depart(); err != nil {
		return err
	}
	for i := range *rounds {
		if err := v.round(i); err != nil {
			return fmt.Errorf("round %d: %w", i+1, err)
		}
	}
	ctx, cancel := context.WithTimeout(v.t.Context(), startTimeout)
	defer cancel()
	// "peri down" cleans up after one that was killed, too.
	if err := v.up.Kill(); err != nil {
		return err
	}
	if err := v.machine.Down(ctx); err != nil {
		return err
	}
	left, err := v.machine.Leftovers(ctx)
	if err == nil && len(left) > 0 {
		err = fmt.Errorf("peri down --purge left behind:\n  %s", strings.Join(left, "\n  "))
	}
	return err
}

// depart starts the first peri and what is to run all the time.
func (v *voyage) depart() error {
	ctx, cancel := context.WithTimeout(v.t.Context(), startTimeout+settleTimeout)
	defer cancel()
	l, err := v.machine.Listen(ctx, "tcp", "127.0.0.1:5000")
	if err != nil {
		return err
	}
	r := registry.Serve(l)
	v.t.Cleanup(func() { _ = r.Close() }) // its listener has gone with the machine
	img, err := images.Busybox()
	if err != nil {
		return err
	}
	if v.image, err = r.Push(ctx, "busybox:1", img); err != nil {
		return err
	}
	if v.up, err = v.machine.Up(ctx); err != nil {
		return err
	}
	client, err := v.client()
	if err != nil {
		return err
	}
	_, err = client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	if _, err := client.AppsV1().Deployments(metav1.NamespaceDefault).Create(ctx, pods("steady", v.image, "steady", steadyReplicas), metav1.CreateOptions{}); err != nil {
		return err
	}
	return v.inspect(ctx, client)
}

func (v *voyage) client() (kubernetes.Interface, error) {
	config, err := v.machine.ClientConfig()
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(config)
}

// round lets the writers write, kills peri, starts it again and compares.
func (v *voyage) round(i int) error {
	ctx, cancel := context.WithTimeout(v.t.Context(), startTimeout+settleTimeout)
	defer cancel()
	if err := v.kill(ctx); err != nil {
		return err
	}
	// Now and then it does not even get to its feet.
	if i%3 == 2 {
		if err := v.killWhileStarting(ctx); err != nil {
			return err
		}
	}
	begin := time.Now()
	var err error
	if v.up, err = v.machine.Up(ctx); err != nil {
		return err
	}
	ready := time.Since(begin)
	client, err := v.client()
	if err != nil {
		return err
	}
	found, err := stored(ctx, client)
	if err != nil {
		return err
	}
	if wrong := v.ledger.compare(found); len(wrong) > 0 {
		return fmt.Errorf("after the restart\n  %s", strings.Join(wrong, "\n  "))
	}
	if err := v.inspect(ctx, client); err != nil {
		return err
	}
	objects, answers := v.ledger.size()
	v.t.Logf("round %d: %d objects after %d acknowledged writes; ready after %v, settled after %v", i+1, objects, answers, ready, time.Since(begin))
	return nil
}

// kill kills peri after a random number of acknowledged writes.
func (v *voyage) kill(ctx context.Context) error {
	client, err := v.client()
	if err != nil {
		return err
	}
	w := &writers{client: client, ledger: v.ledger, image: v.image, seed: v.random.Uint64()}
	answers := 1 + v.random.IntN(mostAnswers)
	enough := v.ledger.after(answers)
	writing, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.run(writing)
	}()
	select {
	case <-enough:
	case <-ended: // every writer was refused: told below
	case <-ctx.Done():
	}
	w.expectLoss()
	err = v.up.Kill()
	stop()
	<-ended
	return errors.Join(append(w.refused, err, ctx.Err())...)
}

// killWhileStarting starts peri and kills it before or soon after it is ready.
func (v *voyage) killWhileStarting(ctx context.Context) error {
	short, cancel := context.WithTimeout(ctx, time.Duration(v.random.Int64N(int64(slowestStart))))
	defer cancel()
	p, err := v.machine.Up(short)
	if p == nil {
		return err
	}
	v.up = p
	select {
	case <-p.Done():
		return err // it ended by itself
	case <-short.Done():
	}
	return p.Kill()
}

// inspect waits until all has settled and compares the node with the API.
func (v *voyage) inspect(ctx context.Context, client kubernetes.Interface) error {
	view, err := follow(ctx, client)
	if err != nil {
		return err
	}
	defer view.stop()
	n, err := openNode(ctx, v.machine)
	if err != nil {
		return err
	}
	defer n.closer.Close()
	following, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		n.follow(following, view)
	}()
	defer func() {
		stop()
		<-done
	}()
	if err := v.compareSteady(ctx, n, view); err != nil {
		return err
	}
	settling, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	err = view.await(settling, func() error {
		if err := view.settled(); err != nil {
			return err
		}
		all, err := view.pods.List(labels.Everything())
		if err != nil {
			return err
		}
		return n.check(ctx, all)
	})
	if wrong := view.tooMany(); len(wrong) > 0 {
		err = errors.Join(err, errors.New(strings.Join(wrong, "\n")))
	}
	if err != nil {
		return err
	}
	return v.compareSteady(ctx, n, view)
}

// compareSteady checks that nothing has touched the pods that nobody changes. The
// first call that finds all of them remembers them.
func (v *voyage) compareSteady(ctx context.Context, n *node, view *view) error {
	list, err := view.pods.Pods(metav1.NamespaceDefault).List(labels.Everything())
	if err != nil {
		return err
	}
	if v.steady == nil && view.settled() != nil {
		return nil // the first of them are on their way
	}
	now, err := n.run(ctx, list)
	if err != nil {
		return fmt.Errorf("steady pods: %w", err)
	}
	if v.steady == nil {
		v.steady = now
	}
	if len(now) != steadyReplicas || !maps.Equal(now, v.steady) {
		return fmt.Errorf("steady pods have changed\n  now    %+v\n  before %+v", now, v.steady)
	}
	return nil
}

// A refused write is an answer, a broken connection is none.
func TestIsAnswer(t *testing.T) {
	t.Parallel()
	if !isAnswer(fmt.Errorf("update: %w", apierrors.NewConflict(corev1.Resource("configmaps"), "a", errors.New("x")))) {
		t.Error("a conflict is an answer")
	}
	if isAnswer(errors.New("connection reset by peer")) {
		t.Error("a broken connection is no answer")
	}
}
