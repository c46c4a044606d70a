package policy_test

import (
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/periplus/periplus/cni/policy"
	"github.com/periplus/periplus/linux/netnstest"
	"github.com/periplus/periplus/proxy/proxytest"
)

// TestTable connects pods under one policy after the other, all by changes of the
// same table.
func TestTable(t *testing.T) {
	t.Parallel()
	netnstest.Run(t, func() {
		node := proxytest.NewNode(t)
		web, friend, stranger := node.Pod(), node.Pod(), node.Pod()
		web.Serve(8080)
		web.Serve(9090)
		objects := policy.Objects{Node: "n1", Pods: []*corev1.Pod{
			pod("a", "web", web.IP.String(), "n1", "app=web"), pod("a", "friend", friend.IP.String(), "n1", "app=friend"),
			pod("a", "stranger", stranger.IP.String(), "n1", "app=stranger"),
		}}
		table, err := policy.OpenTable("", false)
		if err != nil {
			t.Fatal(err)
		}
		defer table.Close()
		// What shall be reached is waited for; what shall be dropped is given up soon.
		reach := func(p *proxytest.Pod, port uint16, want bool) bool {
			dial := p.TryDial
			if want {
				dial = p.Dial
			}
			_, err := dial(netip.AddrPortFrom(web.IP, port))
			return err == nil
		}
		for _, test := range []struct {
			name, spec                string
			friend, stranger, another bool // friend and stranger to 8080, friend to 9090
		}{
			{"all", "podSelector: {}\ningress: [{}]", true, true, true},
			{"nothing in", "podSelector: {}", false, false, false},
			{"a friend", "podSelector: {matchLabels: {app: web}}\ningress: [{from: [{podSelector: {matchLabels: {app: friend}}}]}]", true, false, true},
			{"a friend, to one port", "podSelector: {matchLabels: {app: web}}\ningress: [{from: [{podSelector: {matchLabels: {app: friend}}}], ports: [{port: http}]}]", true, false, false},
			{"ports from to", "podSelector: {matchLabels: {app: web}}\ningress: [{ports: [{port: 8081, endPort: 9090}]}]", false, false, true},
			{"a range but one", "podSelector: {matchLabels: {app: web}}\ningress: [{from: [{ipBlock: {cidr: 10.42.0.0/16, except: [" + friend.IP.String() + "/32]}}]}]", false, true, false},
			{"strangers may not out", "podSelector: {matchLabels: {app: stranger}}\npolicyTypes: [Egress]", true, false, true},
			{"strangers may out to a name", "podSelector: {matchExpressions: [{key: app, operator: In, values: [stranger, friend]}]}\npolicyTypes: [Egress]\n" +
				"egress: [{to: [{podSelector: {matchLabels: {app: web}}}], ports: [{port: http}]}]", true, true, false},
		} {
			o := objects
			o.Policies = []*networkingv1.NetworkPolicy{parse(t, test.spec)}
			if err := table.Apply(policy.Compile(o)); err != nil {
				t.Fatalf("%s: %v", test.name, err)
			}
			if got := [3]bool{reach(friend, 8080, test.friend), reach(stranger, 8080, test.stranger), reach(friend, 9090, test.another)}; got != [3]bool{test.friend, test.stranger, test.another} {
				t.Errorf("%s: friend, stranger, friend to another port: %v", test.name, got)
			}
			// The node itself always reaches its pods.
			if _, err := node.Dial(netip.AddrPortFrom(web.IP, 8080)); err != nil {
				t.Errorf("%s: from the node: %v", test.name, err)
			}
		}
		if err := table.Remove(); err != nil {
			t.Fatal(err)
		}
		if !reach(stranger, 8080, true) {
			t.Error("without policies: not reached")
		}
	})
}
