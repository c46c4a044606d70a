package policy_test

import (
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/periplus/periplus/cni/policy"
)

func pod(namespace, name, ip, node string, labels ...string) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{}},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Ports: []corev1.ContainerPort{
			{Name: "http", ContainerPort: 8080, Protocol: corev1.ProtocolTCP}}}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIPs: []corev1.PodIP{{IP: ip}}},
	}
	for _, l := range labels {
		k, v, _ := strings.Cut(l, "=")
		p.Labels[k] = v
	}
	return p
}

func parse(t testing.TB, spec string) *networkingv1.NetworkPolicy {
	t.Helper()
	p := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "p"}}
	if err := yaml.UnmarshalStrict([]byte(spec), &p.Spec); err != nil {
		t.Fatal(err)
	}
	return p
}

// text is a chain with the members of its sets.
func text(l *policy.Layout, chain string) string {
	var out []string
	for _, m := range l.Chains[chain] {
		s := m.String()
		for name, set := range l.Sets {
			var members []string
			for x := range set.Members {
				member := x.Address.String()
				if set.Endpoints {
					member += ":" + netip.AddrPortFrom(x.Address, x.Port).String()[len(member)+1:]
				}
				members = append(members, member)
			}
			slices.Sort(members)
			s = strings.ReplaceAll(s, "@"+name, "{"+strings.Join(members, ",")+"}")
		}
		out = append(out, s)
	}
	return strings.Join(out, "; ")
}

func TestCompile(t *testing.T) {
	t.Parallel()
	done := pod("a", "done", "10.42.0.9", "n1", "app=web")
	done.Status.Phase = corev1.PodSucceeded
	host := pod("a", "host", "192.0.2.1", "n1", "app=web")
	host.Spec.HostNetwork = true
	objects := policy.Objects{
		Node: "n1",
		Pods: []*corev1.Pod{
			pod("a", "web", "10.42.0.2", "n1", "app=web"), pod("a", "db", "10.42.0.3", "n1", "app=db"), pod("a", "far", "10.42.1.2", "n2", "app=db"),
			pod("b", "client", "10.42.0.4", "n1", "role=client"), pod("b", "other", "10.42.1.5", "n2"), done, host,
		},
		Namespaces: []*corev1.Namespace{
			{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"team": "a"}}},
			{ObjectMeta: metav1.ObjectMeta{Name: "b", Labels: map[string]string{"team": "b"}}},
		},
	}
	for _, test := range []struct {
		name, spec string
		in, out    map[string]string // by address
	}{
		{"nothing in", "podSelector: {}", map[string]string{"10.42.0.2": "", "10.42.0.3": ""}, nil},
		{"nothing out", "podSelector: {}\npolicyTypes: [Egress]", nil, map[string]string{"10.42.0.2": "", "10.42.0.3": ""}},
		{"all in", "podSelector: {matchLabels: {app: web}}\ningress: [{}]", map[string]string{"10.42.0.2": "all"}, nil},
		{"types follow from egress", "podSelector: {matchLabels: {app: web}}\negress: [{ports: [{port: 53, protocol: UDP}]}]",
			map[string]string{"10.42.0.2": ""}, map[string]string{"10.42.0.2": "udp 53-53"}},
		{"pods of the namespace", "podSelector: {matchLabels: {app: web}}\ningress: [{from: [{podSelector: {matchLabels: {app: db}}}]}]",
			map[string]string{"10.42.0.2": "{10.42.0.3,10.42.1.2}"}, nil},
		{"pods of namespaces", "podSelector: {matchLabels: {app: web}}\ningress: [{from: [{namespaceSelector: {matchLabels: {team: b}}, podSelector: {matchLabels: {role: client}}}]}]",
			map[string]string{"10.42.0.2": "{10.42.0.4}"}, nil},
		{"namespaces", "podSelector: {matchLabels: {app: web}}\ningress: [{from: [{namespaceSelector: {matchLabels: {team: b}}}]}]",
			map[string]string{"10.42.0.2": "{10.42.0.4,10.42.1.5}"}, nil},
		{"ranges", "podSelector: {matchLabels: {app: web}}\ningress: [{from: [{ipBlock: {cidr: 192.0.2.0/24, except: [192.0.2.8/29]}}], ports: [{port: 80}, {port: 8000, endPort: 9000}]}]",
			map[string]string{"10.42.0.2": "192.0.2.0/24 not 192.0.2.8/29 tcp 80-80; 192.0.2.0/24 not 192.0.2.8/29 tcp 8000-9000"}, nil},
		{"named port here", "podSelector: {matchLabels: {app: web}}\ningress: [{ports: [{port: http}, {port: none}]}]",
			map[string]string{"10.42.0.2": "tcp 8080-8080"}, nil},
		{"named port there", "podSelector: {matchLabels: {app: web}}\npolicyTypes: [Egress]\negress: [{to: [{podSelector: {matchLabels: {app: db}}}], ports: [{port: http}]}]",
			nil, map[string]string{"10.42.0.2": "{10.42.0.3:8080,10.42.1.2:8080}"}},
		{"IPv6 is not ours", "podSelector: {matchLabels: {app: web}}\ningress: [{from: [{ipBlock: {cidr: 'fd00::/8'}}]}]", map[string]string{"10.42.0.2": ""}, nil},
	} {
		o := objects
		o.Policies = []*networkingv1.NetworkPolicy{parse(t, test.spec)}
		l := policy.Compile(o)
		for _, d := range []struct {
			name string
			have map[netip.Addr]string
			want map[string]string
		}{{"ingress", l.Ingress, test.in}, {"egress", l.Egress, test.out}} {
			got := map[string]string{}
			for a, chain := range d.have {
				got[a.String()] = text(l, chain)
			}
			if !maps.Equal(got, d.want) {
				t.Errorf("%s: %s: got %q, want %q", test.name, d.name, got, d.want)
			}
		}
	}
}
