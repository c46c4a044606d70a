package apiserver_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	aggregation "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset"
	apiregistration "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset/typed/apiregistration/v1"

	"github.com/periplus/periplus/apiserver"
	"github.com/periplus/periplus/apiserver/aggregator"
	"github.com/periplus/periplus/base/pki"
)

// aggregating runs a server with a front proxy's certificate.
func aggregating(t *testing.T) (*kubernetes.Clientset, apiregistration.APIServiceInterface, *pki.Authority) {
	t.Helper()
	ca, err := pki.New("front-proxy-ca")
	if err != nil {
		t.Fatal(err)
	}
	cert, key, err := ca.Pair(pki.Request{CommonName: "front-proxy-client", Client: true})
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	s, c := startWith(t, func(config *apiserver.Config) {
		config.Trust = aggregator.Trust{ProxyCA: ca.PEM, ProxyNames: []string{"front-proxy-client"}, UserHeaders: []string{"X-Remote-User"}}
		config.ProxyClient = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	})
	return c, aggregation.NewForConfigOrDie(s.ClientConfig("test", "system:masters")).ApiregistrationV1().APIServices(), ca
}

// until waits for an APIService of which holds.
func until(ctx context.Context, t *testing.T, services apiregistration.APIServiceInterface, name, what string, holds func(*apiregistrationv1.APIService) bool) {
	t.Helper()
	w, err := services.Watch(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", name).String()})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		if a, ok := e.Object.(*apiregistrationv1.APIService); ok && holds(a) {
			return
		}
	}
	t.Fatalf("%s did not become %s", name, what)
}

func condition(status apiregistrationv1.ConditionStatus, reason, message string) func(*apiregistrationv1.APIService) bool {
	return func(a *apiregistrationv1.APIService) bool {
		for _, c := range a.Status.Conditions {
			if c.Type == apiregistrationv1.Available && c.Status == status && c.Reason == reason && (message == "" || c.Message == message) {
				return true
			}
		}
		return false
	}
}

func remoteService(group string, port int32) *apiregistrationv1.APIService {
	return &apiregistrationv1.APIService{ObjectMeta: metav1.ObjectMeta{Name: "v1." + group}, Spec: apiregistrationv1.APIServiceSpec{
		Group: group, Version: "v1", GroupPriorityMinimum: 2000, VersionPriority: 10, InsecureSkipTLSVerify: true,
		Service: &apiregistrationv1.ServiceReference{Namespace: "default", Name: "ext", Port: &port},
	}}
}

func TestLocalAPIServices(t *testing.T) {
	t.Parallel()
	c, services, _ := aggregating(t)
	for name, want := range map[string]struct{ group, version int32 }{
		"v1.": {18000, 1}, "v1.apps": {17800, 15}, "v2.autoscaling": {17500, 30}, "v1.autoscaling": {17500, 15}, "v1.batch": {17400, 15},
		"v1.apiextensions.k8s.io": {16700, 15}, "v1.flowcontrol.apiserver.k8s.io": {16100, 21}, "v1beta1.metrics.k8s.io": {100, 100},
	} {
		until(t.Context(), t, services, name, "local", func(a *apiregistrationv1.APIService) bool {
			return a.Spec.GroupPriorityMinimum == want.group && a.Spec.VersionPriority == want.version && a.Labels["kube-aggregator.kubernetes.io/automanaged"] != "" &&
				condition(apiregistrationv1.ConditionTrue, "Local", "Local APIServices are always available")(a)
		})
	}
	groups, err := c.Discovery().ServerGroups()
	if err != nil {
		t.Fatal(err)
	}
	var order []string
	for _, g := range groups.Groups {
		order = append(order, g.Name)
	}
	if got := strings.Join(order[:6], " "); got != " apiregistration.k8s.io apps events.k8s.io authentication.k8s.io authorization.k8s.io" {
		t.Errorf("discovery begins with %q", got)
	}
}

// TestAvailability takes a remote APIService through what can be wrong with its Service.
func TestAvailability(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	c, services, _ := aggregating(t)
	if _, err := services.Create(ctx, remoteService("ext.example.com", 443), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	const name = "v1.ext.example.com"
	until(ctx, t, services, name, "not found", condition(apiregistrationv1.ConditionFalse, "ServiceNotFound", `service/ext in "default" is not present`))
	result := c.RESTClient().Get().AbsPath("/apis/ext.example.com/v1/things").Do(ctx)
	var code int
	if result.StatusCode(&code); code != http.StatusServiceUnavailable {
		t.Errorf("while there is no Service: %d, want 503", code)
	}
	svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "ext"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "api", Port: 80}}}}
	svc, err := c.CoreV1().Services("default").Create(ctx, svc, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	until(ctx, t, services, name, "a port error", condition(apiregistrationv1.ConditionFalse, "ServicePortError", `service/ext in "default" is not listening on port 443`))
	svc.Spec.Ports[0].Port = 443
	if _, err := c.CoreV1().Services("default").Update(ctx, svc, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	until(ctx, t, services, name, "without slices", condition(apiregistrationv1.ConditionFalse, "EndpointsNotFound", `cannot find endpointslices for service/ext in "default"`))
	port, portName, no, protocol := int32(1), "api", false, corev1.ProtocolTCP
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Name: "ext-1", Labels: map[string]string{discoveryv1.LabelServiceName: "ext"}}, AddressType: discoveryv1.AddressTypeIPv4,
		Ports:     []discoveryv1.EndpointPort{{Name: &portName, Port: &port, Protocol: &protocol}},
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"192.0.2.7"}, Conditions: discoveryv1.EndpointConditions{Ready: &no}}},
	}
	if _, err := c.DiscoveryV1().EndpointSlices("default").Create(ctx, slice, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	until(ctx, t, services, name, "without endpoints", condition(apiregistrationv1.ConditionFalse, "MissingEndpoints", `endpointslices for service/ext in "default" have no addresses with port name "api"`))
	if _, err := services.Patch(ctx, name, types.MergePatchType, []byte(`{"spec":{"service":null,"insecureSkipTLSVerify":null}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	until(ctx, t, services, name, "local", condition(apiregistrationv1.ConditionTrue, "Local", ""))
}

// extension is a small extension API server: it answers with what it is asked and by whom.
func extension(t *testing.T, group, version string, proxies *pki.Authority) int32 {
	t.Helper()
	list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: group + "/" + version,
		APIResources: []metav1.APIResource{{Name: "things", SingularName: "thing", Kind: "Thing", Verbs: []string{"get", "list"}}}}
	mux := http.NewServeMux()
	mux.HandleFunc("/apis/"+group+"/"+version, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(list)
	})
	mux.HandleFunc("/openapi/v2", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Etag", `"1"`)
		_, _ = fmt.Fprintf(w, `{"swagger":"2.0","info":{"title":"ext","version":"1"},"paths":{"/apis/%[1]s/%[2]s/things/{name}":{"get":{"operationId":"readThing","produces":["application/json"],`+
			`"responses":{"200":{"description":"OK","schema":{"$ref":"#/definitions/Thing"}}}}},"/other/":{"get":{"responses":{"200":{"description":"OK"}}}}},`+
			`"definitions":{"Thing":{"type":"object","properties":{"size":{"type":"integer"}},"x-kubernetes-group-version-kind":[{"group":%[1]q,"version":%[2]q,"kind":"Thing"}]}}}`, group, version)
	})
	mux.HandleFunc("/openapi/v3", http.NotFound)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if len(r.TLS.PeerCertificates) == 0 || r.TLS.PeerCertificates[0].Subject.CommonName != "front-proxy-client" {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		if r.Header.Get("Upgrade") == "echo" {
			conn, buf, err := w.(http.Hijacker).Hijack()
			if err != nil {
				return
			}
			defer func() { _ = conn.Close() }()
			_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
			line, _ := buf.ReadString('\n')
			_, _ = fmt.Fprintf(conn, "%s said %s", r.Header.Get("X-Remote-User"), line)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"kind": "Thing", "apiVersion": group + "/" + version, "path": r.URL.Path, "query": r.URL.RawQuery,
			"user": r.Header.Get("X-Remote-User"), "groups": r.Header.Values("X-Remote-Group"), "extra": r.Header.Get("X-Remote-Extra-Scopes"), "authorization": r.Header.Get("Authorization")})
	})
	server := httptest.NewUnstartedServer(mux)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(proxies.PEM)
	server.TLS = &tls.Config{ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: pool}
	server.StartTLS()
	t.Cleanup(server.Close)
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	n, _ := strconv.Atoi(port)
	return int32(n) //nolint:gosec // a port
}

func externalName(ctx context.Context, t *testing.T, c kubernetes.Interface) {
	t.Helper()
	svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "ext"}, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"}}
	if _, err := c.CoreV1().Services("default").Create(ctx, svc, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// TestProxying shows what arrives at an extension API server.
func TestProxying(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ca, err := pki.New("front-proxy-ca")
	if err != nil {
		t.Fatal(err)
	}
	pairOf := func(a *pki.Authority, r pki.Request) tls.Certificate {
		cert, key, err := a.Pair(r)
		if err != nil {
			t.Fatal(err)
		}
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			t.Fatal(err)
		}
		return pair
	}
	front, serving := pairOf(ca, pki.Request{CommonName: "front-proxy-client", Client: true}), pairOf(ca, pki.Request{CommonName: "api", Server: true, IPs: []net.IP{net.IPv4(127, 0, 0, 1)}})
	s, c := startWith(t, func(config *apiserver.Config) {
		config.Trust = aggregator.Trust{ProxyCA: ca.PEM, ProxyNames: []string{"front-proxy-client"}, UserHeaders: []string{"X-Remote-User"},
			GroupHeaders: []string{"X-Remote-Group"}, UIDHeaders: []string{"X-Remote-Uid"}, ExtraPrefixes: []string{"X-Remote-Extra-"}}
		config.ProxyClient = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &front, nil }
		config.Certificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &serving, nil }
	}, l)
	services := aggregation.NewForConfigOrDie(s.ClientConfig("test", "system:masters")).ApiregistrationV1().APIServices()
	externalName(ctx, t, c)
	if _, err := services.Create(ctx, remoteService("ext.example.com", extension(t, "ext.example.com", "v1", ca)), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	until(ctx, t, services, "v1.ext.example.com", "available", condition(apiregistrationv1.ConditionTrue, "Passed", "all checks passed"))

	// A proxy in front of this server names the user; this server is the proxy of the next.
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca.PEM)
	outside := &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{front}, MinVersion: tls.VersionTLS12}
	ask := func(set func(http.Header)) map[string]any {
		q, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+l.Addr().String()+"/apis/ext.example.com/v1/things?x=y", nil)
		if err != nil {
			t.Fatal(err)
		}
		q.Header.Set("X-Remote-User", "ann")
		q.Header.Add("X-Remote-Group", "system:masters")
		q.Header.Set("X-Remote-Extra-Scopes", "all")
		set(q.Header)
		tr := &http.Transport{TLSClientConfig: outside}
		defer tr.CloseIdleConnections()
		resp, err := tr.RoundTrip(q)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		out := map[string]any{"code": resp.StatusCode}
		_ = json.NewDecoder(resp.Body).Decode(&out)
		return out
	}
	got := ask(func(http.Header) {})
	if got["user"] != "ann" || got["path"] != "/apis/ext.example.com/v1/things" || got["query"] != "x=y" || got["extra"] != "all" ||
		fmt.Sprint(got["groups"]) != "[system:masters system:authenticated]" || got["authorization"] != "" {
		t.Errorf("what arrived: %v", got)
	}
	if got := ask(func(h http.Header) { h.Set("Impersonate-User", "bob"); h.Set("Impersonate-Group", "system:masters") }); got["user"] != "bob" {
		t.Errorf("an impersonated user: %v", got)
	}

	// Upgraded connections go through.
	conn, err := (&tls.Dialer{Config: outside}).DialContext(ctx, "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_, _ = io.WriteString(conn, "GET /apis/ext.example.com/v1/things/a/shell HTTP/1.1\r\nHost: api\r\nConnection: Upgrade\r\nUpgrade: echo\r\nX-Remote-User: ann\r\nX-Remote-Group: system:masters\r\n\r\n")
	in := bufio.NewReader(conn)
	resp, err := http.ReadResponse(in, nil) //nolint:bodyclose // there is none
	if err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("upgrade: %v, %v", resp, err)
	}
	_, _ = io.WriteString(conn, "hello\n")
	if line, err := in.ReadString('\n'); line != "ann said hello\n" {
		t.Errorf("through the upgraded connection: %q, %v", line, err)
	}

	// Without the proxy's certificate the headers mean nothing.
	outside.Certificates = nil
	if got := ask(func(http.Header) {}); fmt.Sprint(got["code"]) != "403" {
		t.Errorf("headers without a certificate: %v, want 403 for system:anonymous", got)
	}
}

// TestMetricsAreHandedOver: a metrics-server takes the built-in group over, and gives it back.
func TestMetricsAreHandedOver(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	c, services, ca := aggregating(t)
	const name = "v1beta1.metrics.k8s.io"
	until(ctx, t, services, name, "local", condition(apiregistrationv1.ConditionTrue, "Local", ""))
	externalName(ctx, t, c)
	port := extension(t, "metrics.k8s.io", "v1beta1", ca)
	patch := fmt.Sprintf(`{"spec":{"insecureSkipTLSVerify":true,"service":{"namespace":"default","name":"ext","port":%d}}}`, port)
	if _, err := services.Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	until(ctx, t, services, name, "available", condition(apiregistrationv1.ConditionTrue, "Passed", ""))
	resources := func() string {
		list, err := c.Discovery().ServerResourcesForGroupVersion("metrics.k8s.io/v1beta1")
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, r := range list.APIResources {
			out = append(out, r.Name)
		}
		return strings.Join(out, " ")
	}
	if got := resources(); got != "things" {
		t.Errorf("resources of the other server: %q", got)
	}
	if err := services.Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	until(ctx, t, services, name, "local again", condition(apiregistrationv1.ConditionTrue, "Local", ""))
	for resources() != "nodes pods" && ctx.Err() == nil { // the connection to the other server may outlast its APIService for a moment
	}
}

// TestOldDocuments: a server that only has OpenAPI v2 is in the documents of v3, too.
func TestOldDocuments(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	c, services, ca := aggregating(t)
	externalName(ctx, t, c)
	if _, err := services.Create(ctx, remoteService("ext.example.com", extension(t, "ext.example.com", "v1", ca)), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	until(ctx, t, services, "v1.ext.example.com", "available", condition(apiregistrationv1.ConditionTrue, "Passed", "all checks passed"))
	paths, err := c.Discovery().OpenAPIV3().Paths()
	if err != nil {
		t.Fatal(err)
	}
	at, ok := paths["apis/ext.example.com/v1"]
	if !ok {
		t.Fatal("the group version has no document")
	}
	text, err := at.Schema("application/json")
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		OpenAPI    string
		Paths      map[string]any
		Components struct{ Schemas map[string]any }
	}
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	if document.OpenAPI != "3.0.0" || len(document.Paths) != 1 || document.Paths["/apis/ext.example.com/v1/things/{name}"] == nil || document.Components.Schemas["Thing"] == nil {
		t.Errorf("%s", text)
	}
	if _, err := at.Schema("application/com.github.proto-openapi.spec.v3@v1.0+protobuf"); err != nil {
		t.Error(err)
	}
}
