package meshtest_test

import (
	"fmt"
	"net"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/xds"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/periplus/periplus/mesh/meshtest"
)

// gRPC-Go's own xDS client finds the endpoints of a Service, and is routed by a
// VirtualService.
func TestGRPCClient(t *testing.T) {
	t.Parallel()
	m := meshtest.New(t)
	for _, version := range []string{"v1", "v2"} {
		port := serveHealth(t, version)
		grpcService(t, m, "echo-"+version, port)
	}
	grpcService(t, m, "echo", serveHealth(t, "v1"))
	bootstrap := fmt.Sprintf(`{
		"xds_servers": [{"server_uri": %q, "channel_creds": [{"type": "insecure"}], "server_features": ["xds_v3"]}],
		"node": {"id": "proxyless~127.0.0.1~client.shop~shop.svc.cluster.local", "metadata": {"GENERATOR": "grpc", "NAMESPACE": "shop"}}}`, m.Plain)
	resolver, err := xds.NewXDSResolverWithConfigForTesting([]byte(bootstrap))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := grpc.NewClient("xds:///echo.shop.svc.cluster.local:9090", grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithResolvers(resolver))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	client := healthpb.NewHealthClient(conn)
	call := func(service string) error {
		_, err := client.Check(t.Context(), &healthpb.HealthCheckRequest{Service: service}, grpc.WaitForReady(true))
		return err
	}
	if err := call("v1"); err != nil {
		t.Fatalf("the first call: %v", err)
	}
	m.Apply("VirtualService", "shop", "echo", `{"hosts": ["echo"], "http": [{"route": [{"destination": {"host": "echo-v2", "port": {"number": 9090}}}]}]}`)
	for i := 0; ; i++ {
		if err := call("v2"); err == nil {
			break
		} else if i == 5000 {
			t.Fatalf("the route has not changed: %v", err)
		}
	}
}

// serveHealth serves gRPC's health service, which knows one name, and returns its port.
func serveHealth(t *testing.T, name string) int32 {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	h := health.NewServer()
	h.SetServingStatus(name, healthpb.HealthCheckResponse_SERVING)
	healthpb.RegisterHealthServer(s, h)
	go func() { _ = s.Serve(l) }()
	t.Cleanup(s.Stop)
	return int32(l.Addr().(*net.TCPAddr).Port)
}

// grpcService is a Service with one endpoint on this machine.
func grpcService(t *testing.T, m *meshtest.Mesh, name string, port int32) {
	t.Helper()
	proto, ready, portName := corev1.ProtocolTCP, true, "grpc"
	if _, err := m.Client.CoreV1().Services("shop").Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop"},
		Spec:       corev1.ServiceSpec{ClusterIP: "10.43.1.1", Ports: []corev1.ServicePort{{Name: portName, Port: 9090}}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Client.DiscoveryV1().EndpointSlices("shop").Create(t.Context(), &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: name, Namespace: "shop", Labels: map[string]string{discoveryv1.LabelServiceName: name}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: &portName, Port: &port, Protocol: &proto}},
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{"127.0.0.1"}, Conditions: discoveryv1.EndpointConditions{Ready: &ready}}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}
