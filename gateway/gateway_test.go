package gateway_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/periplus/periplus/gateway"
	gatewayall "github.com/periplus/periplus/gateway/all"
	"github.com/periplus/periplus/gateway/ingress"
	"github.com/periplus/periplus/linux/porttest"
)

const namespace = "shop"

// cluster is a gateway over fake clients; its ports are on loopback.
type cluster struct {
	t       *testing.T
	client  kubernetes.Interface
	dynamic dynamic.Interface
	server  *gateway.Server
	http    int
	https   int
	spans   spans
}

// start runs a gateway over objects of the built-in kinds and of the Gateway API.
func start(t *testing.T, objects []runtime.Object, more ...*unstructured.Unstructured) *cluster {
	t.Helper()
	objects = append(objects,
		&networkingv1.IngressClass{
			ObjectMeta: metav1.ObjectMeta{Name: ingress.Class, Annotations: map[string]string{networkingv1.AnnotationIsDefaultIngressClass: "true"}},
			Spec:       networkingv1.IngressClassSpec{Controller: ingress.Controller},
		},
		&corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: "n1"},
			Status: corev1.NodeStatus{
				Addresses:  []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "192.0.2.1"}},
				Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			},
		})
	c := &cluster{t: t, client: fake.NewClientset(objects...), http: porttest.Free(t), https: porttest.Free(t), spans: make(spans, 100)}
	kinds := map[schema.GroupVersionResource]string{}
	for _, k := range []string{"GatewayClass", "Gateway", "HTTPRoute", "GRPCRoute", "ReferenceGrant"} {
		plural := strings.ToLower(k) + "s"
		if k == "GatewayClass" {
			plural = "gatewayclasses"
		}
		kinds[schema.GroupVersionResource{Group: "gateway.networking.k8s.io", Version: "v1", Resource: plural}] = k + "List"
	}
	c.dynamic = dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds)
	for _, o := range more { // the fake would guess the plural of Gateway
		for gvr, list := range kinds {
			if list == o.GetKind()+"List" {
				if _, err := c.dynamic.Resource(gvr).Namespace(o.GetNamespace()).Create(t.Context(), o, metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	shared := informers.NewSharedInformerFactory(c.client, 0)
	log := slog.New(slog.DiscardHandler)
	s, err := gateway.New(gateway.Config{
		Sources:   gatewayall.Sources(gatewayall.Config{Client: c.client, Informers: shared, Dynamic: c.dynamic, Namespaces: true, Log: log}),
		Informers: shared, Address: "127.0.0.1", HTTPPort: c.http, HTTPSPort: c.https, WriteStatus: true, Journey: c.spans, Node: "n1", Log: log,
	})
	if err != nil {
		t.Fatal(err)
	}
	c.server = s
	ctx, cancel := context.WithCancel(t.Context())
	shared.StartWithContext(ctx)
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		shared.Shutdown()
	})
	return c
}

// service is a Service with one endpoint that answers "name path host".
func service(t *testing.T, name string) []runtime.Object {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, "%s %s %s", name, r.RequestURI, r.Host)
	}))
	t.Cleanup(s.Close)
	_, text, _ := net.SplitHostPort(s.Listener.Addr().String())
	port, _ := strconv.Atoi(text)
	return []runtime.Object{
		&corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: 80}}},
		},
		&discoveryv1.EndpointSlice{
			ObjectMeta:  metav1.ObjectMeta{Namespace: namespace, Name: name + "-1", Labels: map[string]string{discoveryv1.LabelServiceName: name}},
			AddressType: discoveryv1.AddressTypeIPv4,
			Ports:       []discoveryv1.EndpointPort{{Name: ptr.To("http"), Port: ptr.To(int32(port))}},
			Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{"127.0.0.1"}}},
		},
	}
}

func objectOf[T any](t *testing.T, text string) *T {
	t.Helper()
	out := new(T)
	if err := yaml.UnmarshalStrict([]byte(text), out); err != nil {
		t.Fatal(err)
	}
	if o, ok := any(out).(metav1.Object); ok {
		o.SetUID(types.UID(o.GetName()))
	}
	return out
}

func custom(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	out := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &out.Object); err != nil {
		t.Fatal(err)
	}
	return out
}

// ask sends a request; until the gateway listens it is tried again, since nothing
// reports when it does.
func (c *cluster) ask(port int, host, path string, change ...func(*http.Request)) (int, string, http.Header) {
	c.t.Helper()
	for {
		q, err := http.NewRequestWithContext(c.t.Context(), "GET", fmt.Sprintf("http://127.0.0.1:%d%s", port, path), nil)
		if err != nil {
			c.t.Fatal(err)
		}
		q.Host = host
		for _, f := range change {
			f(q)
		}
		r, err := noRedirects.Do(q)
		if err != nil {
			if c.t.Context().Err() != nil {
				c.t.Fatal(err)
			}
			continue
		}
		b, err := io.ReadAll(r.Body)
		_ = r.Body.Close()
		if err != nil {
			c.t.Fatal(err)
		}
		return r.StatusCode, string(b), r.Header
	}
}

var noRedirects = &http.Client{
	Transport:     &http.Transport{DisableKeepAlives: true},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

func TestIngress(t *testing.T) {
	t.Parallel()
	objects := append(service(t, "one"), service(t, "two")...)
	objects = append(objects, objectOf[networkingv1.Ingress](t, `
metadata: {namespace: shop, name: paths}
spec:
  defaultBackend: {service: {name: two, port: {number: 80}}}
  rules:
  - host: a.example
    http:
      paths:
      - {path: /api, pathType: Prefix, backend: {service: {name: one, port: {name: http}}}}
      - {path: /api/exact, pathType: Exact, backend: {service: {name: two, port: {number: 80}}}}
      - {path: /gone, pathType: Prefix, backend: {service: {name: missing, port: {number: 80}}}}
  - host: "*.wild.example"
    http: {paths: [{path: /, pathType: ImplementationSpecific, backend: {service: {name: one, port: {number: 80}}}}]}
`), objectOf[networkingv1.Ingress](t, `
metadata: {namespace: shop, name: rewrite, annotations: {nginx.ingress.kubernetes.io/rewrite-target: /to/$1}}
spec:
  rules:
  - host: b.example
    http: {paths: [{path: "/from/(.*)", pathType: ImplementationSpecific, backend: {service: {name: one, port: {number: 80}}}}]}
`), objectOf[networkingv1.Ingress](t, `
metadata: {namespace: shop, name: other-class}
spec:
  ingressClassName: nginx
  rules:
  - host: c.example
    http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: one, port: {number: 80}}}}]}
`))
	c := start(t, objects)
	for _, test := range []struct {
		host, path string
		status     int
		body       string
	}{
		{"a.example", "/api", 200, "one /api a.example"},
		{"A.Example:80", "/api/x?y", 200, "one /api/x?y A.Example:80"},
		{"a.example", "/apiary", 200, "two /apiary a.example"},
		{"a.example", "/api/exact", 200, "two /api/exact a.example"},
		{"a.example", "/api/exact/more", 200, "one /api/exact/more a.example"},
		{"a.example", "/x/../api", 200, "one /api a.example"},
		{"a.example", "/gone", 503, ""},
		{"x.wild.example", "/", 200, "one / x.wild.example"},
		{"wild.example", "/", 404, ""},
		{"b.example", "/FROM/here", 200, "one /to/here b.example"},
		{"b.example", "/elsewhere", 404, ""},
		{"c.example", "/", 404, ""},
	} {
		status, body, _ := c.ask(c.http, test.host, test.path)
		if status != test.status || test.status == 200 && body != test.body {
			t.Errorf("%s%s: %d %q, want %d %q", test.host, test.path, status, body, test.status, test.body)
		}
	}
	c.eventually("networking.k8s.io", "address of the node", func(ctx context.Context) (watch.Interface, error) {
		return c.client.NetworkingV1().Ingresses(namespace).Watch(ctx, metav1.ListOptions{})
	}, func() bool {
		i, err := c.client.NetworkingV1().Ingresses(namespace).Get(t.Context(), "paths", metav1.GetOptions{})
		return err == nil && len(i.Status.LoadBalancer.Ingress) == 1 && i.Status.LoadBalancer.Ingress[0].IP == "192.0.2.1"
	})
}

// eventually checks again on each event until ok.
func (c *cluster) eventually(_, what string, follow func(context.Context) (watch.Interface, error), ok func() bool) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), 30*time.Second)
	defer cancel()
	w, err := follow(ctx)
	if err != nil {
		c.t.Fatal(err)
	}
	defer w.Stop()
	for !ok() {
		select {
		case <-w.ResultChan():
		case <-ctx.Done():
			c.t.Fatalf("never: %s", what)
		}
	}
}

func TestCanary(t *testing.T) {
	t.Parallel()
	objects := append(service(t, "main"), service(t, "next")...)
	rule := `
spec:
  rules:
  - host: a.example
    http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: %s, port: {number: 80}}}}]}
`
	objects = append(objects, objectOf[networkingv1.Ingress](t, "metadata: {namespace: shop, name: a, uid: a}"+fmt.Sprintf(rule, "main")),
		objectOf[networkingv1.Ingress](t, `
metadata:
  namespace: shop
  name: b
  uid: b
  annotations: {nginx.ingress.kubernetes.io/canary: "true", nginx.ingress.kubernetes.io/canary-weight: "50", nginx.ingress.kubernetes.io/canary-by-header: X-Next}
`+fmt.Sprintf(rule, "next")))
	c := start(t, objects)
	with := func(value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set("X-Next", value) }
	}
	seen := map[string]int{}
	for range 60 {
		if _, body, _ := c.ask(c.http, "a.example", "/", with("always")); !strings.HasPrefix(body, "next") {
			t.Fatalf("always: %s", body)
		}
		if _, body, _ := c.ask(c.http, "a.example", "/", with("never")); !strings.HasPrefix(body, "main") {
			t.Fatalf("never: %s", body)
		}
		_, body, _ := c.ask(c.http, "a.example", "/")
		seen[strings.Fields(body)[0]]++
	}
	if seen["main"] == 0 || seen["next"] == 0 {
		t.Errorf("by weight: %v", seen)
	}
}

func pairSecret(t *testing.T, name string, serial int64) *corev1.Secret {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "test"}, DNSNames: []string{"a.example"}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Type: corev1.SecretTypeTLS,
		Data: map[string][]byte{
			corev1.TLSCertKey:       pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
			corev1.TLSPrivateKeyKey: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
		},
	}
}

func TestCertificateIsReplaced(t *testing.T) {
	t.Parallel()
	objects := append(service(t, "one"), pairSecret(t, "site", 1), objectOf[networkingv1.Ingress](t, `
metadata: {namespace: shop, name: a}
spec:
  tls: [{hosts: [a.example], secretName: site}]
  rules:
  - host: a.example
    http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: one, port: {number: 80}}}}]}
`))
	c := start(t, objects)
	if status, _, h := c.ask(c.http, "a.example", "/x"); status != 308 || h.Get("Location") != fmt.Sprintf("https://a.example:%d/x", c.https) {
		t.Errorf("over HTTP: %d to %s", status, h.Get("Location"))
	}
	serial := func() int64 {
		for {
			conn, err := tls.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", c.https), &tls.Config{ServerName: "a.example", InsecureSkipVerify: true}) //nolint:gosec // a test
			if err != nil {
				if t.Context().Err() != nil {
					t.Fatal(err)
				}
				continue
			}
			defer conn.Close()
			return conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
		}
	}
	if got := serial(); got != 1 {
		t.Errorf("serial %d, want 1", got)
	}
	if _, err := c.client.CoreV1().Secrets(namespace).Update(t.Context(), pairSecret(t, "site", 2), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	for serial() != 2 { // nothing reports that a handshake would see it
		if t.Context().Err() != nil {
			t.Fatal("the certificate was not replaced")
		}
	}
}

func TestGateway(t *testing.T) {
	t.Parallel()
	port := porttest.Free(t)
	class := custom(t, `{apiVersion: gateway.networking.k8s.io/v1, kind: GatewayClass, metadata: {name: periplus, generation: 1}, spec: {controllerName: periplus.io/gateway-controller}}`)
	gw := custom(t, fmt.Sprintf(`
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {namespace: shop, name: edge, generation: 1}
spec:
  gatewayClassName: periplus
  listeners:
  - {name: wide, port: %[1]d, protocol: HTTP, hostname: "*.example"}
  - {name: narrow, port: %[1]d, protocol: HTTP, hostname: "narrow.example"}
`, port))
	route := custom(t, `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {namespace: shop, name: a, generation: 1}
spec:
  parentRefs: [{name: edge, sectionName: wide}]
  rules:
  - matches: [{path: {value: /a}}]
    backendRefs: [{name: one, port: 80}]
  - matches: [{path: {value: /a}, headers: [{name: X-Two, value: "yes"}]}, {path: {type: Exact, value: /a/exact}}]
    filters: [{type: URLRewrite, urlRewrite: {path: {type: ReplacePrefixMatch, replacePrefixMatch: /b}}}]
    backendRefs: [{name: two, port: 80}]
  - matches: [{path: {value: /missing}}]
    backendRefs: [{name: nothing, port: 80}]
`)
	c := start(t, append(service(t, "one"), service(t, "two")...), class, gw, route)
	for _, test := range []struct {
		host, path string
		two        bool
		status     int
		body       string
	}{
		{"x.example", "/a/b", false, 200, "one /a/b x.example"},
		{"x.example", "/a/b", true, 200, "two /b/b x.example"},
		{"x.example", "/a/exact", false, 200, "two /b x.example"},
		{"x.example", "/missing", false, 500, ""},
		{"x.example", "/b", false, 404, ""},
		{"narrow.example", "/a", false, 404, ""}, // the other listener's host
		{"x.other", "/a", false, 404, ""},
	} {
		status, body, _ := c.ask(port, test.host, test.path, func(r *http.Request) {
			if test.two {
				r.Header.Set("X-Two", "yes")
			}
		})
		if status != test.status || test.status == 200 && body != test.body {
			t.Errorf("%s%s: %d %q, want %d %q", test.host, test.path, status, body, test.status, test.body)
		}
	}
	routes := c.dynamic.Resource(schema.GroupVersionResource{Group: "gateway.networking.k8s.io", Version: "v1", Resource: "httproutes"}).Namespace(namespace)
	c.eventually("", "conditions of the route", func(ctx context.Context) (watch.Interface, error) {
		return routes.Watch(ctx, metav1.ListOptions{})
	}, func() bool {
		o, err := routes.Get(t.Context(), "a", metav1.GetOptions{})
		if err != nil {
			return false
		}
		text, _ := o.MarshalJSON()
		return strings.Contains(string(text), `"BackendNotFound"`) && strings.Contains(string(text), `"Accepted"`)
	})
}

// TestNothingRuns checks that without objects nobody listens.
func TestNothingRuns(t *testing.T) {
	t.Parallel()
	c := start(t, nil)
	if got := c.server.Engine().Snapshot(); len(got.Listeners) != 0 {
		t.Errorf("listeners %v", got.Listeners)
	}
}
