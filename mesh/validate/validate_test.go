package validate_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/periplus/periplus/mesh/validate"
)

func TestObject(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		kind, spec string
		want       string // part of the message; empty: it is right
	}{
		"canary":             {"VirtualService", `{"hosts": ["web"], "http": [{"route": [{"destination": {"host": "web", "subset": "v1"}, "weight": 90}, {"destination": {"host": "web"}, "weight": 10}]}]}`, ""},
		"no host":            {"VirtualService", `{"http": [{"route": [{"destination": {"host": "web"}}]}]}`, "virtual service must have at least one host"},
		"no route":           {"VirtualService", `{"hosts": ["web"]}`, "http, tcp or tls must be provided in virtual service"},
		"nothing to do":      {"VirtualService", `{"hosts": ["web"], "http": [{}]}`, "HTTP route, redirect or direct_response is required"},
		"route and redirect": {"VirtualService", `{"hosts": ["web"], "http": [{"redirect": {"uri": "/"}, "route": [{"destination": {"host": "web"}}]}]}`, "HTTP route cannot contain both route and redirect"},
		"wildcard":           {"VirtualService", `{"hosts": ["*"], "http": [{"route": [{"destination": {"host": "web"}}]}]}`, "wildcard host * is not allowed for virtual services bound to the mesh gateway"},
		"negative weight":    {"VirtualService", `{"hosts": ["web"], "http": [{"route": [{"destination": {"host": "web"}, "weight": -1}]}]}`, "weight -1 < 0"},
		"no weight":          {"VirtualService", `{"hosts": ["web"], "http": [{"route": [{"destination": {"host": "a"}}, {"destination": {"host": "b"}}]}]}`, "total destination weight = 0"},
		"expression":         {"VirtualService", `{"hosts": ["web"], "http": [{"match": [{"uri": {"regex": "("}}], "route": [{"destination": {"host": "web"}}]}]}`, "Istio uses RE2 style regex-based match"},
		"fault":              {"VirtualService", `{"hosts": ["web"], "http": [{"fault": {"abort": {"httpStatus": 99}}, "route": [{"destination": {"host": "web"}}]}]}`, "HTTP status 99 is not in range 200-599"},
		"retries":            {"VirtualService", `{"hosts": ["web"], "http": [{"retries": {"attempts": 2, "retryOn": "always"}, "route": [{"destination": {"host": "web"}}]}]}`, `"always" is not a valid retryOn policy`},
		"timeout":            {"VirtualService", `{"hosts": ["web"], "http": [{"timeout": "0.0001s", "route": [{"destination": {"host": "web"}}]}]}`, "duration must be greater than 1ms"},
		"rate":               {"VirtualService", `{"hosts": ["web"], "http": [{"rateLimit": {"unit": "DAY", "requestsPerUnit": 1}, "route": [{"destination": {"host": "web"}}]}]}`, `rate limit unit "DAY" must be SECOND, MINUTE or HOUR`},
		"two mistakes":       {"VirtualService", `{"http": [{}]}`, "2 errors occurred:\n\t* virtual service must have at least one host\n\t* HTTP route, redirect or direct_response is required\n"},
		"type":               {"VirtualService", `{"hosts": "web"}`, "VirtualService shop/it"},

		"subsets":         {"DestinationRule", `{"host": "web", "subsets": [{"name": "v1", "labels": {"version": "v1"}}]}`, ""},
		"same subsets":    {"DestinationRule", `{"host": "web", "subsets": [{"name": "v1"}, {"name": "v1"}]}`, "duplicate subset names: v1"},
		"no name":         {"DestinationRule", `{"host": "web", "subsets": [{}]}`, "subset name cannot be empty"},
		"no rule's host":  {"DestinationRule", `{}`, "empty domain name not allowed"},
		"empty policy":    {"DestinationRule", `{"host": "web", "trafficPolicy": {}}`, "traffic policy must have at least one field"},
		"percent":         {"DestinationRule", `{"host": "web", "trafficPolicy": {"outlierDetection": {"maxEjectionPercent": 101}}}`, "percentage 101 is not in range 0..100"},
		"negative":        {"DestinationRule", `{"host": "web", "trafficPolicy": {"connectionPool": {"tcp": {"maxConnections": -1}}}}`, "max connections must be non-negative"},
		"client TLS":      {"DestinationRule", `{"host": "web", "trafficPolicy": {"tls": {"mode": "MUTUAL"}}}`, "client certificate required for mutual tls"},
		"strict":          {"PeerAuthentication", `{"mtls": {"mode": "STRICT"}}`, ""},
		"port of all":     {"PeerAuthentication", `{"portLevelMtls": {"80": {"mode": "DISABLE"}}}`, "mesh/namespace peer authentication cannot have port level mTLS"},
		"nothing":         {"AuthorizationPolicy", `{}`, ""},
		"everything":      {"AuthorizationPolicy", `{"rules": [{}]}`, ""},
		"deny nothing":    {"AuthorizationPolicy", `{"action": "DENY"}`, "DENY action without `rules` is meaningless"},
		"no provider":     {"AuthorizationPolicy", `{"action": "CUSTOM", "rules": [{}]}`, "`provider.name` must not be empty"},
		"empty source":    {"AuthorizationPolicy", `{"rules": [{"from": [{"source": {}}]}]}`, "`from.source` must have at least one field set, found at rule 0"},
		"empty operation": {"AuthorizationPolicy", `{"rules": [{}, {"to": [{"operation": {}}]}]}`, "`to.operation` must have at least one field set, found at rule 1"},
		"attribute":       {"AuthorizationPolicy", `{"rules": [{"when": [{"key": "weather", "values": ["fine"]}]}]}`, "unknown attribute (weather)"},
		"address":         {"AuthorizationPolicy", `{"rules": [{"from": [{"source": {"ipBlocks": ["x"]}}]}]}`, `invalid CIDR/IP address: "x"`},
		"another kind":    {"Sidecar", `{}`, ""},
	} {
		u := object(t, c.kind, c.spec)
		err := validate.Object(u)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: refused: %v", name, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func object(t *testing.T, kind, spec string) *unstructured.Unstructured {
	t.Helper()
	var fields map[string]any
	if err := json.Unmarshal([]byte(spec), &fields); err != nil {
		t.Fatalf("%s: %v", spec, err)
	}
	return &unstructured.Unstructured{Object: map[string]any{"kind": kind, "metadata": map[string]any{"name": "it", "namespace": "shop"}, "spec": fields}}
}

func TestWebhook(t *testing.T) {
	t.Parallel()
	ask := func(body string) (int, string) {
		w := httptest.NewRecorder()
		validate.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodPost, validate.Path, bytes.NewBufferString(body)))
		return w.Code, w.Body.String()
	}
	code, answer := ask(`{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "u", "object": {"kind": "VirtualService", "spec": {"hosts": ["web"]}}}}`)
	if code != 200 || !strings.Contains(answer, `"uid":"u","allowed":false`) || !strings.Contains(answer, "configuration is invalid: http, tcp or tls must be provided") {
		t.Errorf("%d %s", code, answer)
	}
	if code, _ := ask("{"); code != 400 {
		t.Errorf("half a request: %d", code)
	}
}
