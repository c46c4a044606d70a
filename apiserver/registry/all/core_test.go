package all_test

import (
	"context"
	"net/netip"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/all"
)

func ptr[T any](v T) *T { return &v }

// find returns the resource of a kind.
func find(t *testing.T, env registry.Env, kind string) *registry.Resource {
	t.Helper()
	for _, r := range all.Resources(env) {
		if r.Kind == kind {
			return r
		}
	}
	t.Fatalf("no resource of kind %s", kind)
	return nil
}

// objects is a Reader of a fixed list.
type objects []runtime.Object

func (o objects) Get(gvr schema.GroupVersionResource, _, name string) (runtime.Object, error) {
	return nil, apierrors.NewNotFound(gvr.GroupResource(), name)
}

func (o objects) List(gvr schema.GroupVersionResource, _ string) ([]runtime.Object, error) {
	if gvr.Resource == "servicecidrs" {
		return nil, nil
	}
	return o, nil
}

// create runs the steps of a create request up to the store. The caller says
// with finish whether the object was stored.
func create[T runtime.Object](t *testing.T, r *registry.Resource, obj T) (T, func(bool), error) {
	t.Helper()
	ctx := context.Background()
	r.Strategy.Default(obj)
	r.Strategy.PrepareForCreate(ctx, obj)
	if errs := r.Strategy.Validate(ctx, obj); len(errs) > 0 {
		return obj, nil, errs.ToAggregate()
	}
	finish := func(bool) {}
	var err error
	if r.Hooks.BeginCreate != nil {
		finish, err = r.Hooks.BeginCreate(ctx, obj, false)
	}
	return obj, finish, err
}

func update[T runtime.Object](t *testing.T, r *registry.Resource, obj, old T) (T, error) {
	t.Helper()
	ctx := context.Background()
	r.Strategy.Default(obj)
	r.Strategy.PrepareForUpdate(ctx, obj, old)
	if errs := r.Strategy.ValidateUpdate(ctx, obj, old); len(errs) > 0 {
		return obj, errs.ToAggregate()
	}
	if r.Hooks.BeginUpdate != nil {
		finish, err := r.Hooks.BeginUpdate(ctx, obj, old, false)
		if err != nil {
			return obj, err
		}
		finish(true)
	}
	return obj, nil
}

func service(change ...func(*corev1.ServiceSpec)) *corev1.Service {
	svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default"}, Spec: corev1.ServiceSpec{
		Selector: map[string]string{"app": "web"}, Ports: []corev1.ServicePort{{Port: 80}},
	}}
	for _, c := range change {
		c(&svc.Spec)
	}
	return svc
}

func nodePort(port int32) func(*corev1.ServiceSpec) {
	return func(s *corev1.ServiceSpec) { s.Type, s.Ports[0].NodePort = corev1.ServiceTypeNodePort, port }
}

func clusterIP(ip string) func(*corev1.ServiceSpec) {
	return func(s *corev1.ServiceSpec) { s.ClusterIP = ip }
}

var serviceEnv = registry.Env{ServiceCIDRs: []netip.Prefix{netip.MustParsePrefix("10.43.0.0/24")}, NodePortLow: 30000, NodePortHigh: 30063}

func TestServiceAllocation(t *testing.T) {
	t.Parallel()
	env := serviceEnv
	env.Objects = objects{service(clusterIP("10.43.0.10"), func(s *corev1.ServiceSpec) { s.ClusterIPs = []string{"10.43.0.10"} }, nodePort(30001))}
	r := find(t, env, "Service")

	svc, finish, err := create(t, r, service())
	if err != nil {
		t.Fatal(err)
	}
	ip := netip.MustParseAddr(svc.Spec.ClusterIP)
	if !env.ServiceCIDRs[0].Contains(ip) || ip.Less(netip.MustParseAddr("10.43.0.17")) {
		t.Errorf("cluster IP %s is not from the dynamic part of the range", ip)
	}
	if got := svc.Spec; len(got.ClusterIPs) != 1 || got.ClusterIPs[0] != got.ClusterIP || got.IPFamilies[0] != corev1.IPv4Protocol ||
		*got.IPFamilyPolicy != corev1.IPFamilyPolicySingleStack || got.Type != corev1.ServiceTypeClusterIP ||
		*got.InternalTrafficPolicy != corev1.ServiceInternalTrafficPolicyCluster || got.Ports[0].TargetPort.IntValue() != 80 {
		t.Errorf("defaults: %+v", got)
	}
	finish(true)

	fail := func(name, want string, change ...func(*corev1.ServiceSpec)) {
		t.Helper()
		if _, _, err := create(t, r, service(change...)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", name, err, want)
		}
	}
	fail("address of the new service", "failed to allocate IP "+svc.Spec.ClusterIP+": provided IP is already allocated", clusterIP(svc.Spec.ClusterIP))
	fail("address of a stored service", "failed to allocate IP 10.43.0.10: provided IP is already allocated", clusterIP("10.43.0.10"))
	fail("address of another network", "failed to allocate IP 192.168.0.1: the provided network does not match the current range", clusterIP("192.168.0.1"))
	fail("broadcast address", "is not in the valid range. The range of valid IPs is 10.43.0.0/24", clusterIP("10.43.0.255"))
	fail("family", "IPv6 is not configured on this cluster", clusterIP("fd00::1"))
	fail("dual stack", "this cluster is not configured for dual-stack services", func(s *corev1.ServiceSpec) { s.IPFamilyPolicy = ptr(corev1.IPFamilyPolicyRequireDualStack) })
	fail("node port of a stored service", "spec.ports[0].nodePort: Invalid value: 30001: provided port is already allocated", nodePort(30001))
	fail("node port out of range", "provided port is not in the valid range. The range of valid ports is 30000-30063", nodePort(80))

	// What a write took that was not stored is free again.
	_, finish, err = create(t, r, service(clusterIP("10.43.0.20"), nodePort(30002)))
	if err != nil {
		t.Fatal(err)
	}
	finish(false)
	kept, finish, err := create(t, r, service(clusterIP("10.43.0.20"), nodePort(30002)))
	if err != nil {
		t.Fatal(err)
	}
	finish(true)
	r.Hooks.AfterDelete(context.Background(), kept)
	if _, _, err := create(t, r, service(clusterIP("10.43.0.20"), nodePort(30002))); err != nil {
		t.Errorf("after deletion: %v", err)
	}
}

func TestServiceRangeEnds(t *testing.T) {
	t.Parallel()
	env := serviceEnv
	env.ServiceCIDRs = []netip.Prefix{netip.MustParsePrefix("10.43.0.0/29")}
	r := find(t, env, "Service")
	seen := map[string]bool{}
	for range 6 {
		svc, finish, err := create(t, r, service())
		if err != nil {
			t.Fatal(err)
		}
		finish(true)
		seen[svc.Spec.ClusterIP] = true
	}
	if len(seen) != 6 || seen["10.43.0.0"] || seen["10.43.0.7"] {
		t.Errorf("addresses of a /29: %v", seen)
	}
	if _, _, err := create(t, r, service()); err == nil || !strings.Contains(err.Error(), "range is full") {
		t.Errorf("got %v, want that the range is full", err)
	}
}

func TestServiceTypes(t *testing.T) {
	t.Parallel()
	r := find(t, serviceEnv, "Service")
	old, finish, err := create(t, r, service(func(s *corev1.ServiceSpec) {
		s.Type = corev1.ServiceTypeNodePort
		s.Ports = []corev1.ServicePort{{Name: "tcp", Port: 53}, {Name: "udp", Port: 53, Protocol: corev1.ProtocolUDP}, {Name: "web", Port: 80}}
	}))
	if err != nil {
		t.Fatal(err)
	}
	finish(true)
	p := old.Spec.Ports
	if p[0].NodePort == 0 || p[0].NodePort != p[1].NodePort || p[2].NodePort == p[0].NodePort {
		t.Errorf("node ports %d %d %d", p[0].NodePort, p[1].NodePort, p[2].NodePort)
	}

	// A client that leaves out what was allocated keeps it.
	again := old.DeepCopy()
	again.Spec.ClusterIP, again.Spec.ClusterIPs = "", nil
	for i := range again.Spec.Ports {
		again.Spec.Ports[i].NodePort = 0
	}
	if again, err = update(t, r, again, old); err != nil {
		t.Fatal(err)
	}
	if again.Spec.ClusterIP != old.Spec.ClusterIP || again.Spec.Ports[2].NodePort != p[2].NodePort {
		t.Errorf("not kept: %+v", again.Spec)
	}

	// One that only changes the type gives up what goes with the old one.
	plain := old.DeepCopy()
	plain.Spec.Type = corev1.ServiceTypeClusterIP
	if plain, err = update(t, r, plain, old); err != nil {
		t.Fatal(err)
	}
	if plain.Spec.Ports[0].NodePort != 0 || plain.Spec.ExternalTrafficPolicy != "" {
		t.Errorf("not dropped: %+v", plain.Spec)
	}
	if _, finish, err = create(t, r, service(nodePort(p[0].NodePort))); err != nil {
		t.Errorf("node port was not released: %v", err)
	} else {
		finish(false)
	}

	// The address is fixed.
	other := plain.DeepCopy()
	other.Spec.ClusterIP, other.Spec.ClusterIPs = "10.43.0.99", []string{"10.43.0.99"}
	if _, err := update(t, r, other, plain); err == nil || !strings.Contains(err.Error(), `spec.clusterIPs[0]: Invalid value: ["10.43.0.99"]: may not change once set`) {
		t.Errorf("got %v", err)
	}

	// An external name has no address, and gives its own back.
	external := plain.DeepCopy()
	external.Spec.Type, external.Spec.ExternalName = corev1.ServiceTypeExternalName, "example.com"
	if external, err = update(t, r, external, plain); err != nil {
		t.Fatal(err)
	}
	if external.Spec.ClusterIP != "" || len(external.Spec.IPFamilies) != 0 {
		t.Errorf("not dropped: %+v", external.Spec)
	}
	if _, _, err = create(t, r, service(clusterIP(plain.Spec.ClusterIP))); err != nil {
		t.Errorf("cluster IP was not released: %v", err)
	}
}

func TestServiceDualStack(t *testing.T) {
	t.Parallel()
	env := serviceEnv
	env.ServiceCIDRs = append(env.ServiceCIDRs, netip.MustParsePrefix("fd00:43::/108"))
	r := find(t, env, "Service")
	svc, finish, err := create(t, r, service(func(s *corev1.ServiceSpec) { s.IPFamilyPolicy = ptr(corev1.IPFamilyPolicyPreferDualStack) }))
	if err != nil {
		t.Fatal(err)
	}
	finish(true)
	if len(svc.Spec.ClusterIPs) != 2 || !strings.HasPrefix(svc.Spec.ClusterIPs[1], "fd00:43::") {
		t.Fatalf("addresses %v", svc.Spec.ClusterIPs)
	}
	single := svc.DeepCopy()
	single.Spec.IPFamilyPolicy = ptr(corev1.IPFamilyPolicySingleStack)
	if single, err = update(t, r, single, svc); err != nil {
		t.Fatal(err)
	}
	if len(single.Spec.ClusterIPs) != 1 || len(single.Spec.IPFamilies) != 1 {
		t.Errorf("not released: %+v", single.Spec)
	}
	headless, _, err := create(t, r, service(func(s *corev1.ServiceSpec) { s.ClusterIP, s.Selector = corev1.ClusterIPNone, nil }))
	if err != nil {
		t.Fatal(err)
	}
	if *headless.Spec.IPFamilyPolicy != corev1.IPFamilyPolicyRequireDualStack || len(headless.Spec.IPFamilies) != 2 {
		t.Errorf("headless service without selector: %+v", headless.Spec)
	}
}

func TestServiceValidation(t *testing.T) {
	t.Parallel()
	r := find(t, serviceEnv, "Service")
	for name, test := range map[string]struct {
		change func(*corev1.ServiceSpec)
		want   string
	}{
		"no ports":      {func(s *corev1.ServiceSpec) { s.Ports = nil }, "spec.ports: Required value"},
		"unnamed ports": {func(s *corev1.ServiceSpec) { s.Ports = append(s.Ports, corev1.ServicePort{Port: 81, Name: "b"}) }, "spec.ports[0].name: Required value"},
		"port twice": {func(s *corev1.ServiceSpec) {
			s.Ports = []corev1.ServicePort{{Port: 80, Name: "a"}, {Port: 80, Name: "b"}}
		}, "spec.ports[1]: Duplicate value"},
		"type":              {func(s *corev1.ServiceSpec) { s.Type = "Magic" }, `spec.type: Unsupported value: "Magic": supported values: "ClusterIP", "ExternalName", "LoadBalancer", "NodePort"`},
		"external name":     {func(s *corev1.ServiceSpec) { s.Type = corev1.ServiceTypeExternalName }, "spec.externalName: Required value"},
		"port of ClusterIP": {func(s *corev1.ServiceSpec) { s.Ports[0].NodePort = 30000 }, "spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'"},
		"headless NodePort": {func(s *corev1.ServiceSpec) { s.Type, s.ClusterIP = corev1.ServiceTypeNodePort, corev1.ClusterIPNone }, "may not be set to 'None' for NodePort services"},
		"affinity":          {func(s *corev1.ServiceSpec) { s.SessionAffinity = "Sticky" }, `spec.sessionAffinity: Unsupported value: "Sticky"`},
		"external IP":       {func(s *corev1.ServiceSpec) { s.ExternalIPs = []string{"127.0.0.1"} }, "may not be in the loopback range (127.0.0.0/8, ::1/128)"},
		"traffic policy":    {func(s *corev1.ServiceSpec) { s.ExternalTrafficPolicy = "Local" }, "may only be set for externally-accessible services"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, _, err := create(t, r, service(test.change)); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}

func TestNamespace(t *testing.T) {
	t.Parallel()
	r := find(t, registry.Env{}, "Namespace")
	ns, _, err := create(t, r, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "blue"}})
	if err != nil {
		t.Fatal(err)
	}
	if ns.Labels[corev1.LabelMetadataName] != "blue" || ns.Status.Phase != corev1.NamespaceActive || len(ns.Spec.Finalizers) != 1 || ns.Spec.Finalizers[0] != corev1.FinalizerKubernetes {
		t.Errorf("got %+v", ns)
	}
	changed := ns.DeepCopy()
	changed.Spec.Finalizers, changed.Labels = nil, nil
	if changed, err = update(t, r, changed, ns); err != nil {
		t.Fatal(err)
	}
	if len(changed.Spec.Finalizers) != 1 || changed.Labels[corev1.LabelMetadataName] != "blue" {
		t.Errorf("an update removed the finalizer or the label: %+v", changed)
	}
	status := ns.DeepCopy()
	status.Status.Phase = corev1.NamespaceTerminating
	errs := r.Status.ValidateUpdate(context.Background(), status, ns)
	if len(errs) != 1 || errs[0].Error() != `status.Phase: Invalid value: "Terminating": may only be 'Active' if `+"`deletionTimestamp` is empty" {
		t.Errorf("got %v", errs)
	}
}

func TestPodLife(t *testing.T) {
	t.Parallel()
	r := find(t, registry.Env{}, "Pod")
	pod, _, err := create(t, r, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default", Labels: map[string]string{"rev": "1"}},
		Spec: corev1.PodSpec{
			Containers:      []corev1.Container{{Name: "main", Image: "nginx:1.2"}},
			SchedulingGates: []corev1.PodSchedulingGate{{Name: "hold"}},
			TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: "zone", WhenUnsatisfiable: corev1.DoNotSchedule,
				LabelSelector: &metav1.LabelSelector{}, MatchLabelKeys: []string{"rev"}}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.1"},
	})
	if err != nil {
		t.Fatal(err)
	}
	s := pod.Status
	if pod.Generation != 1 || s.Phase != corev1.PodPending || s.PodIP != "" || s.QOSClass != corev1.PodQOSBestEffort || len(s.Conditions) != 1 || s.Conditions[0].Reason != "SchedulingGated" {
		t.Errorf("generation %d, status %+v", pod.Generation, s)
	}
	if c := pod.Spec.Containers[0]; c.ImagePullPolicy != corev1.PullIfNotPresent || c.TerminationMessagePath != "/dev/termination-log" || *pod.Spec.TerminationGracePeriodSeconds != 30 {
		t.Errorf("defaults: %+v", pod.Spec)
	}
	if e := pod.Spec.TopologySpreadConstraints[0].LabelSelector.MatchExpressions; len(e) != 1 || e[0].Values[0] != "1" {
		t.Errorf("matchLabelKeys were not merged: %+v", e)
	}
	released := pod.DeepCopy()
	released.Spec.SchedulingGates = nil
	if released, err = update(t, r, released, pod); err != nil || released.Generation != 2 {
		t.Errorf("generation %d, error %v", released.Generation, err)
	}

	grace := func(change func(*corev1.Pod), asked *int64) int64 {
		p := released.DeepCopy()
		change(p)
		options := &metav1.DeleteOptions{GracePeriodSeconds: asked}
		if !r.Graceful(context.Background(), p, options) {
			t.Error("not graceful")
		}
		return *options.GracePeriodSeconds
	}
	bound := func(p *corev1.Pod) { p.Spec.NodeName = "n" }
	for _, test := range []struct {
		name string
		got  int64
		want int64
	}{
		{"unscheduled", grace(func(*corev1.Pod) {}, nil), 0},
		{"running", grace(bound, nil), 30},
		{"asked", grace(bound, ptr[int64](5)), 5},
		{"negative", grace(bound, ptr[int64](-5)), 1},
		{"ended", grace(func(p *corev1.Pod) { p.Spec.NodeName, p.Status.Phase = "n", corev1.PodSucceeded }, nil), 0},
	} {
		if test.got != test.want {
			t.Errorf("grace period of a pod that is %s: %d, want %d", test.name, test.got, test.want)
		}
	}
}

func TestSecretAndConfigMap(t *testing.T) {
	t.Parallel()
	r := find(t, registry.Env{}, "Secret")
	secret, _, err := create(t, r, &corev1.Secret{StringData: map[string]string{"a": "b"}, Immutable: ptr(true)})
	if err != nil || string(secret.Data["a"]) != "b" || secret.StringData != nil || secret.Type != corev1.SecretTypeOpaque {
		t.Fatalf("got %+v, error %v", secret, err)
	}
	changed := secret.DeepCopy()
	changed.Data["a"], changed.Immutable, changed.Type = []byte("c"), nil, corev1.SecretTypeTLS
	_, err = update(t, r, changed, secret)
	for _, want := range []string{
		`type: Invalid value: "kubernetes.io/tls": field is immutable`,
		"immutable: Forbidden: field is immutable when `immutable` is set",
		"data: Forbidden: field is immutable when `immutable` is set",
		"data[tls.crt]: Required value", "data[tls.key]: Required value",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	cms := find(t, registry.Env{}, "ConfigMap")
	if _, _, err := create(t, cms, &corev1.ConfigMap{Data: map[string]string{"a/b": ""}, BinaryData: map[string][]byte{"a/b": nil}}); err == nil || !strings.Contains(err.Error(), "duplicate of key present in binaryData") {
		t.Errorf("got %v", err)
	}
}
