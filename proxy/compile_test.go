package proxy_test

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/periplus/periplus/proxy"
)

func service(change func(*v1.Service)) *v1.Service {
	s := &v1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		Spec: v1.ServiceSpec{
			ClusterIP: "10.43.0.7", ClusterIPs: []string{"10.43.0.7"},
			Ports: []v1.ServicePort{{Name: "http", Protocol: v1.ProtocolTCP, Port: 80}},
		},
	}
	if change != nil {
		change(s)
	}
	return s
}

func endpoint(ip, node string, ready, serving, terminating bool) discoveryv1.Endpoint {
	return discoveryv1.Endpoint{
		Addresses: []string{ip}, NodeName: &node,
		Conditions: discoveryv1.EndpointConditions{Ready: &ready, Serving: &serving, Terminating: &terminating},
	}
}

func slice(name string, endpoints ...discoveryv1.Endpoint) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: "web"}},
		AddressType: discoveryv1.AddressTypeIPv4, Endpoints: endpoints,
		Ports: []discoveryv1.EndpointPort{{Name: ptr.To("http"), Protocol: ptr.To(v1.ProtocolTCP), Port: ptr.To[int32](8080)}},
	}
}

func ready(ip, node string) discoveryv1.Endpoint    { return endpoint(ip, node, true, true, false) }
func draining(ip, node string) discoveryv1.Endpoint { return endpoint(ip, node, false, true, true) }
func down(ip, node string) discoveryv1.Endpoint     { return endpoint(ip, node, false, false, false) }

func TestCompileChoosesEndpoints(t *testing.T) {
	t.Parallel()
	local := func(s *v1.Service) {
		s.Spec.Type = v1.ServiceTypeNodePort
		s.Spec.Ports[0].NodePort = 30080
		s.Spec.ExternalTrafficPolicy = v1.ServiceExternalTrafficPolicyLocal
	}
	for _, c := range []struct {
		name           string
		svc            *v1.Service
		slices         []*discoveryv1.EndpointSlice
		cluster, local []string
	}{
		{"ready ones, sorted", service(nil), []*discoveryv1.EndpointSlice{slice("a", ready("10.42.1.3", "n2"), down("10.42.0.9", "n1"), ready("10.42.0.2", "n1"))},
			[]string{"10.42.0.2", "10.42.1.3"}, nil},
		{"one in two slices counts once", service(nil), []*discoveryv1.EndpointSlice{slice("a", ready("10.42.0.2", "n1")), slice("b", ready("10.42.0.2", "n1"))},
			[]string{"10.42.0.2"}, nil},
		{"draining ones while nothing is ready", service(nil), []*discoveryv1.EndpointSlice{slice("a", draining("10.42.0.2", "n1"), down("10.42.0.3", "n1"))},
			[]string{"10.42.0.2"}, nil},
		{"ready before draining", service(nil), []*discoveryv1.EndpointSlice{slice("a", draining("10.42.0.2", "n1"), ready("10.42.0.3", "n1"))},
			[]string{"10.42.0.3"}, nil},
		{"local policy", service(local), []*discoveryv1.EndpointSlice{slice("a", ready("10.42.0.2", "n1"), ready("10.42.1.2", "n2"))},
			[]string{"10.42.0.2", "10.42.1.2"}, []string{"10.42.0.2"}},
		{"local policy, the local one drains", service(local), []*discoveryv1.EndpointSlice{slice("a", draining("10.42.0.2", "n1"), ready("10.42.1.2", "n2"))},
			[]string{"10.42.1.2"}, []string{"10.42.0.2"}},
		{"no slice", service(nil), nil, nil, nil},
	} {
		ports := proxy.Compile(c.svc, c.slices, "n1", false)
		if len(ports) != 1 {
			t.Errorf("%s: %d ports", c.name, len(ports))
			continue
		}
		if got := addrs(ports[0].Cluster); !slices.Equal(got, c.cluster) {
			t.Errorf("%s: cluster %v, want %v", c.name, got, c.cluster)
		}
		if got := addrs(ports[0].Local); !slices.Equal(got, c.local) {
			t.Errorf("%s: local %v, want %v", c.name, got, c.local)
		}
	}
}

func addrs(list []netip.AddrPort) []string {
	var out []string
	for _, e := range list {
		out = append(out, e.Addr().String())
	}
	return out
}

func TestCompileServices(t *testing.T) {
	t.Parallel()
	none := map[string]*v1.Service{
		"headless":      service(func(s *v1.Service) { s.Spec.ClusterIP, s.Spec.ClusterIPs = "None", []string{"None"} }),
		"external name": service(func(s *v1.Service) { s.Spec.Type = v1.ServiceTypeExternalName }),
		"node-local":    service(func(s *v1.Service) { s.Annotations = map[string]string{proxy.NodeLocalAnnotation: "true"} }),
		"other family":  service(func(s *v1.Service) { s.Spec.ClusterIP, s.Spec.ClusterIPs = "fd00::1", []string{"fd00::1"} }),
		"gone":          nil,
	}
	for name, svc := range none {
		if got := proxy.Compile(svc, nil, "n1", false); len(got) != 0 {
			t.Errorf("%s: %v", name, got)
		}
	}
	proxied := v1.LoadBalancerIPModeProxy
	p := proxy.Compile(service(func(s *v1.Service) {
		s.Spec.Type = v1.ServiceTypeLoadBalancer
		s.Spec.Ports[0].NodePort = 30080
		s.Spec.ExternalIPs = []string{"192.0.2.9", "192.0.2.8", "fd00::9"}
		s.Spec.SessionAffinity = v1.ServiceAffinityClientIP
		s.Spec.LoadBalancerSourceRanges = []string{"10.0.0.0/8"}
		s.Spec.ExternalTrafficPolicy, s.Spec.HealthCheckNodePort = v1.ServiceExternalTrafficPolicyLocal, 31000
		s.Status.LoadBalancer.Ingress = []v1.LoadBalancerIngress{{IP: "198.51.100.1"}, {IP: "198.51.100.2", IPMode: &proxied}, {Hostname: "x"}}
	}), nil, "n1", false)[0]
	if len(p.External) != 2 || p.External[0] != netip.MustParseAddr("192.0.2.8") || len(p.LoadBalancer) != 1 ||
		p.NodePort != 30080 || p.Affinity != 3*time.Hour || len(p.SourceRanges) != 1 || !p.ExternalLocal || p.HealthCheckNodePort != 31000 {
		t.Errorf("got %+v", p)
	}
}
