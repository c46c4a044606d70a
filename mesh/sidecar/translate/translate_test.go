package translate_test

import (
	"strings"
	"testing"

	cluster "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpoint "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listener "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/periplus/periplus/l7"
	"github.com/periplus/periplus/mesh/sidecar/translate"
	"github.com/periplus/periplus/mesh/telemetry"
)

func newState() *translate.State {
	o := &telemetry.Observer{Metrics: telemetry.New()}
	return translate.New(translate.Options{Observers: func(bool) *telemetry.Observer { return o }})
}

func put(t *testing.T, s *translate.State, name string, m proto.Message) error {
	t.Helper()
	a, err := anypb.New(m)
	if err != nil {
		t.Fatal(err)
	}
	return s.Put(a.GetTypeUrl(), name, a)
}

// What has not changed keeps its pointer, and a resource that cannot be carried out
// leaves the last one in force.
func TestSharing(t *testing.T) {
	t.Parallel()
	s := newState()
	eds := func(name string) *cluster.Cluster {
		return &cluster.Cluster{Name: name, ClusterDiscoveryType: &cluster.Cluster_Type{Type: cluster.Cluster_EDS}}
	}
	for _, name := range []string{"a", "b"} {
		if err := put(t, s, name, eds(name)); err != nil {
			t.Fatal(err)
		}
	}
	before := s.Snapshot()
	changed := eds("a")
	changed.LbPolicy = cluster.Cluster_RANDOM
	if err := put(t, s, "a", changed); err != nil {
		t.Fatal(err)
	}
	after := s.Snapshot()
	if after.Clusters["a"] == before.Clusters["a"] || after.Clusters["b"] != before.Clusters["b"] || after.Clusters["a"].Balancing != l7.Random {
		t.Errorf("%+v, then %+v", before.Clusters, after.Clusters)
	}
	wrong := &cluster.Cluster{Name: "a", ClusterDiscoveryType: &cluster.Cluster_Type{Type: cluster.Cluster_STRICT_DNS}}
	if err := put(t, s, "a", wrong); err == nil || !strings.Contains(err.Error(), "STRICT_DNS is not supported") {
		t.Errorf("%v", err)
	}
	if s.Snapshot().Clusters["a"] != after.Clusters["a"] {
		t.Error("what was refused is in force")
	}
	if names := s.Wanted(translate.TypeEndpoint); strings.Join(names, " ") != "a b" {
		t.Errorf("endpoints are wanted of %v", names)
	}
	s.Remove(translate.TypeCluster, "a")
	if names := s.Wanted(translate.TypeEndpoint); strings.Join(names, " ") != "b" {
		t.Errorf("endpoints are wanted of %v", names)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	s := newState()
	for name, m := range map[string]proto.Message{
		"no address": &listener.Listener{Name: "l"},
		"filter": &listener.Listener{Name: "l", Address: &core.Address{Address: &core.Address_SocketAddress{SocketAddress: &core.SocketAddress{Address: "0.0.0.0"}}},
			FilterChains: []*listener.FilterChain{{Filters: []*listener.Filter{{Name: "mongo"}}}}},
		"action": &route.RouteConfiguration{VirtualHosts: []*route.VirtualHost{{Name: "v", Domains: []string{"*"}, Routes: []*route.Route{{Match: &route.RouteMatch{PathSpecifier: &route.RouteMatch_Prefix{Prefix: "/"}}}}}}},
	} {
		if err := put(t, s, name, m); err == nil {
			t.Errorf("%s: it was taken", name)
		}
	}
	body, err := anypb.New(&endpoint.ClusterLoadAssignment{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Put(translate.TypeCluster, "x", body); err == nil {
		t.Error("endpoints were taken for a cluster")
	}
	if err := s.Put("type.googleapis.com/x", "x", body); err == nil {
		t.Error("an unknown type was taken")
	}
}
