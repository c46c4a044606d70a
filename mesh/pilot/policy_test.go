package pilot

import (
	"slices"
	"testing"
	"time"

	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	networking "istio.io/api/networking/v1alpha3"
	security "istio.io/api/security/v1beta1"
	typev1beta1 "istio.io/api/type/v1beta1"

	"github.com/periplus/periplus/mesh/config"
)

func selecting(app string) *typev1beta1.WorkloadSelector {
	return &typev1beta1.WorkloadSelector{MatchLabels: map[string]string{"app": app}}
}

func peer(namespace, name string, age int, spec *security.PeerAuthentication) *config.PeerAuthentication {
	return &config.PeerAuthentication{Meta: config.Meta{Namespace: namespace, Name: name, Created: time.Unix(int64(age), 0)}, Spec: spec}
}

func mtls(m mode) *security.PeerAuthentication_MutualTLS {
	return &security.PeerAuthentication_MutualTLS{Mode: m}
}

// The more specific PeerAuthentication counts, of two the older; UNSET inherits.
func TestModes(t *testing.T) {
	t.Parallel()
	all := &security.PeerAuthentication{Mtls: mtls(strict)}
	for name, c := range map[string]struct {
		peers []*config.PeerAuthentication
		all   mode
		port  mode
	}{
		"none":      {nil, permissive, permissive},
		"mesh":      {[]*config.PeerAuthentication{peer("istio-system", "d", 1, all)}, strict, strict},
		"namespace": {[]*config.PeerAuthentication{peer("istio-system", "d", 1, all), peer("shop", "d", 2, &security.PeerAuthentication{Mtls: mtls(disable)})}, disable, disable},
		"other":     {[]*config.PeerAuthentication{peer("front", "d", 1, all)}, permissive, permissive},
		"unset":     {[]*config.PeerAuthentication{peer("istio-system", "d", 1, all), peer("shop", "d", 2, &security.PeerAuthentication{})}, strict, strict},
		"older":     {[]*config.PeerAuthentication{peer("shop", "a", 1, all), peer("shop", "b", 2, &security.PeerAuthentication{Mtls: mtls(disable)})}, strict, strict},
		"workload": {[]*config.PeerAuthentication{peer("shop", "w", 1, &security.PeerAuthentication{
			Selector: selecting("web"), Mtls: mtls(strict), PortLevelMtls: map[uint32]*security.PeerAuthentication_MutualTLS{8080: mtls(disable)},
		})}, strict, disable},
		"another workload": {[]*config.PeerAuthentication{peer("shop", "w", 1, &security.PeerAuthentication{Selector: selecting("db"), Mtls: mtls(strict)})}, permissive, permissive},
	} {
		w := &World{peers: c.peers}
		m := w.modesOf("shop", map[string]string{"app": "web"})
		if m.of(9999) != c.all || m.of(8080) != c.port {
			t.Errorf("%s: %s, on port 8080 %s; want %s and %s", name, m.of(9999), m.of(8080), c.all, c.port)
		}
	}
}

// CUSTOM and DENY are asked before ALLOW; no ALLOW policy allows, one without rules does not.
func TestAuthorizationOrder(t *testing.T) {
	t.Parallel()
	policy := func(namespace string, action security.AuthorizationPolicy_Action, rules ...*security.Rule) *config.AuthorizationPolicy {
		return &config.AuthorizationPolicy{Meta: config.Meta{Namespace: namespace, Name: action.String()}, Spec: &security.AuthorizationPolicy{Action: action, Rules: rules}}
	}
	w := &World{policies: []*config.AuthorizationPolicy{
		policy("shop", security.AuthorizationPolicy_ALLOW), policy("istio-system", security.AuthorizationPolicy_DENY, &security.Rule{}),
		policy("shop", security.AuthorizationPolicy_CUSTOM, &security.Rule{}), policy("front", security.AuthorizationPolicy_DENY, &security.Rule{}),
	}}
	got := w.authorizationOf("shop", nil, false)
	var names []string
	for _, r := range got {
		for name := range r.GetPolicies() {
			names = append(names, name)
		}
	}
	want := []string{"ns[shop]-policy[CUSTOM]-rule[0]", "ns[istio-system]-policy[DENY]-rule[0]"}
	if len(got) != 3 || !slices.Equal(names, want) || got[2].GetAction() != rbacv3.RBAC_ALLOW || len(got[2].GetPolicies()) != 0 {
		t.Errorf("%v", got)
	}
	if other := w.authorizationOf("other", nil, false); len(other) != 1 {
		t.Errorf("another namespace has %v, want only what the root namespace says", other)
	}
}

// On plain TCP what only HTTP has counts as matched in a DENY, and not in an ALLOW.
func TestAuthorizationOfTCP(t *testing.T) {
	t.Parallel()
	get := &security.Rule{To: []*security.Rule_To{{Operation: &security.Operation{Methods: []string{"GET"}, Ports: []string{"8080"}}}}}
	header := &security.Rule{When: []*security.Condition{{Key: "request.headers[x]", Values: []string{"y"}}}}
	port := &security.Rule{To: []*security.Rule_To{{Operation: &security.Operation{Ports: []string{"8080"}}}}}
	for name, c := range map[string]struct {
		rule              *security.Rule
		deny, allow       bool // there is a policy
		denyEverything    bool
		denyOnlyWithPorts bool
	}{
		"method and port": {rule: get, deny: true, denyOnlyWithPorts: true},
		"header":          {rule: header, deny: true, denyEverything: true},
		"port":            {rule: port, deny: true, allow: true, denyOnlyWithPorts: true},
	} {
		deny := (&ruleCompiler{tcp: true, deny: true}).rule(c.rule)
		allow := (&ruleCompiler{tcp: true}).rule(c.rule)
		if (deny != nil) != c.deny || (allow != nil) != c.allow {
			t.Errorf("%s: deny %v, allow %v", name, deny, allow)
			continue
		}
		p := deny.GetPermissions()[0]
		if p.GetAny() != c.denyEverything || (p.GetDestinationPort() == 8080) != c.denyOnlyWithPorts {
			t.Errorf("%s: denies %v", name, p)
		}
	}
	if none := (&ruleCompiler{}).rule(&security.Rule{From: []*security.Rule_From{{Source: &security.Source{RequestPrincipals: []string{"*"}}}}}); none != nil {
		t.Errorf("tokens of users are not verified, but %v matches them", none)
	}
}

func TestTrafficPolicyLayers(t *testing.T) {
	t.Parallel()
	simple := func(l networking.LoadBalancerSettings_SimpleLB) *networking.LoadBalancerSettings {
		return &networking.LoadBalancerSettings{LbPolicy: &networking.LoadBalancerSettings_Simple{Simple: l}}
	}
	d := &config.DestinationRule{Spec: &networking.DestinationRule{
		TrafficPolicy: &networking.TrafficPolicy{
			LoadBalancer: simple(networking.LoadBalancerSettings_RANDOM), OutlierDetection: &networking.OutlierDetection{},
			PortLevelSettings: []*networking.TrafficPolicy_PortTrafficPolicy{{Port: &networking.PortSelector{Number: 81}, LoadBalancer: simple(networking.LoadBalancerSettings_LEAST_REQUEST)}},
		},
		Subsets: []*networking.Subset{{Name: "v1", TrafficPolicy: &networking.TrafficPolicy{LoadBalancer: simple(networking.LoadBalancerSettings_ROUND_ROBIN)}}},
	}}
	for _, c := range []struct {
		subset   string
		port     int
		want     networking.LoadBalancerSettings_SimpleLB
		outliers bool
	}{
		{"", 80, networking.LoadBalancerSettings_RANDOM, true},
		{"v1", 80, networking.LoadBalancerSettings_ROUND_ROBIN, true},
		{"", 81, networking.LoadBalancerSettings_LEAST_REQUEST, false},
	} {
		p := trafficPolicy(d, c.subset, c.port)
		if p.GetLoadBalancer().GetSimple() != c.want || (p.GetOutlierDetection() != nil) != c.outliers {
			t.Errorf("subset %q, port %d: %v", c.subset, c.port, p)
		}
	}
}
