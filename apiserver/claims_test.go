package apiserver_test

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/periplus/periplus/apiserver"
	"github.com/periplus/periplus/store"
	"github.com/periplus/periplus/store/mem"
)

const portRecords = "/registry/ranges/nodeports/"

// nodePortService has one node port, and with health another one for health checks.
func nodePortService(name string, port int32, health bool) *corev1.Service {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ServiceSpec{
		Type: corev1.ServiceTypeNodePort, Ports: []corev1.ServicePort{{Port: 80, NodePort: port}},
	}}
	if health {
		s.Spec.Type, s.Spec.ExternalTrafficPolicy = corev1.ServiceTypeLoadBalancer, corev1.ServiceExternalTrafficPolicyLocal
	}
	return s
}

// servers returns clients of n API servers on one store.
func servers(t *testing.T, n int, s store.Store, change func(*apiserver.Config)) []kubernetes.Interface {
	t.Helper()
	var out []kubernetes.Interface
	for i := range n {
		_, c := startWith(t, func(config *apiserver.Config) {
			config.Store, config.Shared = s, true
			config.Advertise = netip.AddrPortFrom(netip.MustParseAddr(fmt.Sprintf("192.0.2.%d", i+1)), 6443)
			change(config)
		})
		out = append(out, c)
	}
	return out
}

// records lists the node ports that have a record.
func records(t *testing.T, s store.Store) []string {
	t.Helper()
	list, err := s.List(t.Context(), portRecords, store.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range list.Entries {
		out = append(out, strings.TrimPrefix(e.Key, portRecords))
	}
	return out
}

// TestServersShareNodePorts: of 64 ports, 20 Services of two each and 24 of one are made
// through three servers at once; each port is given once, the 65th not at all, and what
// one server gives back another hands out.
func TestServersShareNodePorts(t *testing.T) {
	t.Parallel()
	ctx, shared := t.Context(), mem.New()
	clients := servers(t, 3, shared, func(c *apiserver.Config) { c.NodePortLow, c.NodePortHigh = 30000, 30063 })
	var made sync.WaitGroup
	for i := range 3 * 44 {
		made.Go(func() {
			// Each Service is tried through each server: names are unique, too.
			_, err := clients[i%3].CoreV1().Services("default").Create(ctx, nodePortService(fmt.Sprintf("s-%d", i/3), 0, i/3 < 20), metav1.CreateOptions{})
			if full := err != nil && strings.Contains(err.Error(), "range is full"); err != nil && !full && !apierrors.IsAlreadyExists(err) {
				t.Error(err) // full: others hold ports for a name that they will not get
			}
		})
	}
	made.Wait()
	for i := range 44 { // those that found the range full for a moment
		services, name := clients[i%3].CoreV1().Services("default"), fmt.Sprintf("s-%d", i)
		if _, err := services.Get(ctx, name, metav1.GetOptions{}); err == nil {
			continue
		}
		if _, err := services.Create(ctx, nodePortService(name, 0, i < 20), metav1.CreateOptions{}); err != nil {
			t.Error(err)
		}
	}
	owners := map[int32]string{}
	for _, c := range clients {
		clear(owners)
		list, err := c.CoreV1().Services("default").List(ctx, metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range list.Items {
			s := &list.Items[i]
			for _, port := range []int32{s.Spec.HealthCheckNodePort, nodePortOf(s)} {
				if other := owners[port]; port != 0 && other != "" {
					t.Errorf("%s and %s have port %d", other, s.Name, port)
				}
				if port != 0 {
					owners[port] = s.Name
				}
			}
		}
		if len(owners) != 64 {
			t.Errorf("%d ports are given, want 64", len(owners))
		}
	}
	if got := records(t, shared); len(got) != 64 {
		t.Errorf("%d records of 64 ports: %v", len(got), got)
	}
	for _, c := range clients {
		_, err := c.CoreV1().Services("default").Create(ctx, nodePortService("more", 0, false), metav1.CreateOptions{})
		if err == nil || !strings.Contains(err.Error(), "failed to allocate a nodePort: range is full") {
			t.Errorf("a 65th port: %v", err)
		}
		_, err = c.CoreV1().Services("default").Create(ctx, nodePortService("more", 30007, false), metav1.CreateOptions{})
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.ports[0].nodePort: Invalid value: 30007: provided port is already allocated") {
			t.Errorf("a port that is taken: %v", err)
		}
	}
	if err := clients[0].CoreV1().Services("default").Delete(ctx, owners[30007], metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s, err := clients[1].CoreV1().Services("default").Create(ctx, nodePortService("again", 30007, false), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s.Spec.Type, s.Spec.Ports[0].NodePort, s.Spec.ExternalTrafficPolicy = corev1.ServiceTypeClusterIP, 0, ""
	if _, err := clients[1].CoreV1().Services("default").Update(ctx, s, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if slices.Contains(records(t, shared), "30007") {
		t.Error("a port that its Service has given up still has a record")
	}
	if _, err := clients[2].CoreV1().Services("default").Create(ctx, nodePortService("third", 30007, false), metav1.CreateOptions{}); err != nil {
		t.Error(err)
	}
}

func nodePortOf(s *corev1.Service) int32 {
	if len(s.Spec.Ports) == 0 {
		return 0
	}
	return s.Spec.Ports[0].NodePort
}

// TestRecordsOfPorts: records are made for Services that have none, those of nobody are
// no obstacle, and a new server removes them.
func TestRecordsOfPorts(t *testing.T) {
	t.Parallel()
	ctx, shared := t.Context(), mem.New()
	first := servers(t, 1, shared, func(*apiserver.Config) {})[0]
	for name, port := range map[string]int32{"lost": 30100, "kept": 30101} {
		if _, err := first.CoreV1().Services("default").Create(ctx, nodePortService(name, port, false), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	lost, err := shared.Get(ctx, portRecords+"30100")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := shared.Delete(ctx, lost.Key, lost.Mod); err != nil {
		t.Fatal(err)
	}
	for port, value := range map[string]string{
		"30102": `{"namespace":"default","name":"gone","uid":"1"}`, "30103": `{"namespace":"default","name":"kept","uid":"1"}`, "30104": "?",
	} {
		if _, err := shared.Create(ctx, portRecords+port, []byte(value)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := first.CoreV1().Services("default").Create(ctx, nodePortService("new", 30103, false), metav1.CreateOptions{}); err != nil {
		t.Errorf("a port of which a Service says that it has another: %v", err)
	}
	second := servers(t, 1, shared, func(*apiserver.Config) {})[0]
	if got, want := records(t, shared), []string{"30100", "30101", "30103"}; !slices.Equal(got, want) {
		t.Errorf("records of %v, want %v", got, want)
	}
	if _, err := second.CoreV1().Services("default").Create(ctx, nodePortService("other", 30100, false), metav1.CreateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("a port whose record was lost: %v", err)
	}
}

// TestManyPorts: a Service may have more node ports than fit into a transaction.
func TestManyPorts(t *testing.T) {
	t.Parallel()
	ctx, shared := t.Context(), mem.New()
	c := servers(t, 1, narrow{shared}, func(*apiserver.Config) {})[0]
	s := nodePortService("many", 0, false)
	s.Spec.Ports = nil
	for i := range int32(300) {
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: fmt.Sprintf("p%d", i), Port: i + 1})
	}
	if _, err := c.CoreV1().Services("default").Create(ctx, s, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := len(records(t, shared)); got != 300 {
		t.Errorf("%d records of 300 ports", got)
	}
	if err := c.CoreV1().Services("default").Delete(ctx, "many", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := records(t, shared); len(got) != 0 {
		t.Errorf("%d records of no ports", len(got))
	}
}

// narrow takes no more at once than an etcd that is not told otherwise.
type narrow struct{ store.Store }

func (n narrow) Commit(ctx context.Context, ops ...store.Op) (int64, error) {
	if len(ops) > 128 {
		return 0, fmt.Errorf("etcdserver: too many operations in txn request")
	}
	return n.Store.Commit(ctx, ops...)
}

// A forgetful store does what it is asked for, or will do it later, and does not say so.
type forgetful struct {
	store.Store
	mu    sync.Mutex
	on    bool     // writes of Services are not answered
	later bool     // nor done yet
	due   []func() // what is to be done
}

func (f *forgetful) Commit(ctx context.Context, ops ...store.Op) (int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	do := func() (int64, error) { return f.Store.Commit(context.WithoutCancel(ctx), ops...) }
	switch {
	case !f.on || !strings.HasPrefix(ops[0].Key, "/registry/services/specs/default/"):
		return do()
	case f.later:
		f.due = append(f.due, func() { _, _ = do() })
	default:
		if _, err := do(); err != nil {
			return 0, err
		}
	}
	return 0, fmt.Errorf("write %s: %w: the connection was lost", ops[0].Key, store.ErrUnavailable)
}

func (f *forgetful) set(on, later bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.on, f.later = on, later
}

// TestUnknownOutcome: of a write that may have been done nothing is given to others,
// neither by the server that asked for it nor by another one, whether it has been done,
// is done later, or never is.
func TestUnknownOutcome(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	shared := &forgetful{Store: mem.New()}
	clients := servers(t, 2, shared, func(*apiserver.Config) {})
	want := func(name, ip string, port int32) *corev1.Service {
		s := nodePortService(name, port, false)
		s.Spec.ClusterIP = ip
		return s
	}
	create := func(c kubernetes.Interface, s *corev1.Service) error {
		_, err := c.CoreV1().Services("default").Create(ctx, s, metav1.CreateOptions{})
		return err
	}
	shared.set(true, false)
	if err := create(clients[0], want("done", "10.43.5.1", 31001)); !apierrors.IsServiceUnavailable(err) {
		t.Fatalf("a write that is not answered: %v", err)
	}
	shared.set(true, true)
	for i, name := range []string{"soon", "late"} {
		if err := create(clients[0], want(name, fmt.Sprintf("10.43.5.%d", i+2), int32(31002+i))); !apierrors.IsServiceUnavailable(err) {
			t.Fatalf("a write that is not answered: %v", err)
		}
	}
	shared.set(false, false)
	if err := create(clients[0], want("x", "", 31002)); !apierrors.IsInvalid(err) {
		t.Errorf("a port of a write under way is given away: %v", err)
	}
	if err := create(clients[0], want("x", "10.43.5.2", 0)); !apierrors.IsInvalid(err) {
		t.Errorf("an address of a write under way is given away: %v", err)
	}
	for i, c := range clients {
		if err := create(c, want("x", "", 31001)); !apierrors.IsInvalid(err) {
			t.Errorf("server %d gives a port twice: %v", i, err)
		}
		if err := create(c, want("x", "10.43.5.1", 0)); !apierrors.IsInvalid(err) {
			t.Errorf("server %d gives an address twice: %v", i, err)
		}
	}
	// The other server knows nothing of what is under way. Who comes first has it.
	shared.due[0]()
	if err := create(clients[1], want("x", "10.43.5.2", 31002)); !apierrors.IsInvalid(err) {
		t.Errorf("what was stored late is given twice: %v", err)
	}
	if err := create(clients[1], want("x", "10.43.5.3", 31003)); err != nil {
		t.Errorf("what nobody has: %v", err)
	}
	shared.due[1]()
	list, err := clients[0].CoreV1().Services("default").List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range list.Items {
		got = append(got, fmt.Sprintf("%s %s %d", s.Name, s.Spec.ClusterIP, nodePortOf(&s)))
	}
	if want := []string{"done 10.43.5.1 31001", "kubernetes 10.43.0.1 0", "soon 10.43.5.2 31002", "x 10.43.5.3 31003"}; !slices.Equal(got, want) {
		t.Errorf("stored are %q, want %q", got, want)
	}
	// A deletion that nobody knows of.
	shared.set(true, false)
	if err := clients[0].CoreV1().Services("default").Delete(ctx, "done", metav1.DeleteOptions{}); err == nil {
		t.Error("a deletion that is not answered is")
	}
	shared.set(false, false)
	for i, c := range clients {
		if err := create(c, want(fmt.Sprintf("after-%d", i), "", 0)); err != nil {
			t.Fatal(err)
		}
	}
	if err := create(clients[0], want("y", "10.43.5.1", 31001)); err != nil {
		t.Errorf("what is free again: %v", err)
	}
}
