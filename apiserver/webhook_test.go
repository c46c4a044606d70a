package apiserver_test

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/periplus/periplus/linux/porttest"
)

// A program answers admission reviews over TLS, by path.
type program struct {
	*httptest.Server
	ca []byte

	mu    sync.Mutex
	asked map[string][]*admissionv1.AdmissionRequest // by path
}

func startProgram(t *testing.T, answers map[string]func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse) *program {
	t.Helper()
	p := &program{asked: map[string][]*admissionv1.AdmissionRequest{}}
	p.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		review := &admissionv1.AdmissionReview{}
		if err := json.Unmarshal(body, review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		answer := answers[r.URL.Path]
		if answer == nil {
			http.Error(w, "no such path", http.StatusNotFound)
			return
		}
		p.mu.Lock()
		p.asked[r.URL.Path] = append(p.asked[r.URL.Path], review.Request)
		p.mu.Unlock()
		review.Response = answer(review.Request)
		if review.Response == nil { // hangs until the caller gives up
			<-r.Context().Done()
			return
		}
		review.Response.UID, review.Request = review.Request.UID, nil
		_ = json.NewEncoder(w).Encode(review)
	}))
	t.Cleanup(p.Close)
	p.ca = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.Certificate().Raw})
	return p
}

func (p *program) requests(path string) []*admissionv1.AdmissionRequest {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked[path]
}

func (p *program) client(path string) admissionregistrationv1.WebhookClientConfig {
	url := p.URL + path
	return admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: p.ca}
}

func allowed() *admissionv1.AdmissionResponse { return &admissionv1.AdmissionResponse{Allowed: true} }

func patched(patch string) *admissionv1.AdmissionResponse {
	kind := admissionv1.PatchTypeJSONPatch
	return &admissionv1.AdmissionResponse{Allowed: true, Patch: []byte(patch), PatchType: &kind}
}

func ruleFor(group, version, resource string, ops ...admissionregistrationv1.OperationType) []admissionregistrationv1.RuleWithOperations {
	return []admissionregistrationv1.RuleWithOperations{{Operations: ops, Rule: admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{version}, Resources: []string{resource}}}}
}

func ptr[T any](v T) *T { return &v }

func mutating(t *testing.T, c kubernetes.Interface, name string, hooks ...admissionregistrationv1.MutatingWebhook) {
	t.Helper()
	for i := range hooks {
		hooks[i].AdmissionReviewVersions = []string{"v1"}
		if hooks[i].SideEffects == nil {
			hooks[i].SideEffects = ptr(admissionregistrationv1.SideEffectClassNone)
		}
	}
	if _, err := c.AdmissionregistrationV1().MutatingWebhookConfigurations().Create(t.Context(), &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}, Webhooks: hooks}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func validating(t *testing.T, c kubernetes.Interface, name string, hooks ...admissionregistrationv1.ValidatingWebhook) {
	t.Helper()
	for i := range hooks {
		hooks[i].AdmissionReviewVersions = []string{"v1", "v1beta1"}
		if hooks[i].SideEffects == nil {
			hooks[i].SideEffects = ptr(admissionregistrationv1.SideEffectClassNone)
		}
	}
	if _, err := c.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(t.Context(), &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}, Webhooks: hooks}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func configMap(name string, labels map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
}

// TestMutatingWebhooks change objects one after the other, and again if needed.
func TestMutatingWebhooks(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	_, c := start(t)
	p := startProgram(t, map[string]func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse{
		"/first": func(r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
			if strings.Contains(string(r.Object.Raw), `"second":"yes"`) {
				return patched(`[{"op":"add","path":"/data/saw","value":"second"}]`)
			}
			return patched(`[{"op":"add","path":"/data","value":{"first":"yes"}}]`)
		},
		"/second": func(r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
			out := patched(`[{"op":"add","path":"/data/second","value":"yes"}]`)
			out.Warnings = []string{"second was here"}
			return out
		},
	})
	create := ruleFor("", "v1", "configmaps", admissionregistrationv1.Create)
	mutating(t, c, "a",
		admissionregistrationv1.MutatingWebhook{Name: "first.example.com", ClientConfig: p.client("/first"), Rules: create, ReinvocationPolicy: ptr(admissionregistrationv1.IfNeededReinvocationPolicy)},
		admissionregistrationv1.MutatingWebhook{Name: "second.example.com", ClientConfig: p.client("/second"), Rules: create})
	made, err := c.CoreV1().ConfigMaps("default").Create(ctx, configMap("a", nil), metav1.CreateOptions{})
	if err != nil || fmt.Sprint(made.Data) != "map[first:yes saw:second second:yes]" {
		t.Fatalf("%v, %v", made, err)
	}
	if len(p.requests("/first")) != 2 || len(p.requests("/second")) != 1 {
		t.Errorf("asked %d and %d times, want 2 and 1", len(p.requests("/first")), len(p.requests("/second")))
	}
	r := p.requests("/first")[0]
	if r.Namespace != "default" || r.Name != "a" || r.Operation != "CREATE" || r.Kind.Kind != "ConfigMap" || r.UserInfo.Username != "test" || r.OldObject.Raw != nil ||
		!strings.Contains(string(r.Options.Raw), `"kind":"CreateOptions","apiVersion":"meta.k8s.io/v1"`) || !strings.Contains(string(r.Object.Raw), `"kind":"ConfigMap","apiVersion":"v1"`) {
		t.Errorf("the question: %+v\n%s %s", r, r.Object.Raw, r.Options.Raw)
	}
	if _, err := c.CoreV1().ConfigMaps("default").Patch(ctx, "a", types.MergePatchType, []byte(`{"data":{"x":"y"}}`), metav1.PatchOptions{}); err != nil || len(p.requests("/first")) != 2 {
		t.Errorf("an update is not asked about: %v", err)
	}
}

// TestValidatingWebhooks refuse, and fail, in upstream's words.
func TestValidatingWebhooks(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	_, c := start(t)
	p := startProgram(t, map[string]func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse{
		"/no": func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
			return &admissionv1.AdmissionResponse{Result: &metav1.Status{Message: "not today", Code: 403, Reason: metav1.StatusReasonForbidden}}
		},
		"/bare": func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
			return &admissionv1.AdmissionResponse{}
		},
		"/yes":  func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse { return allowed() },
		"/hang": func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse { return nil },
		"/patch": func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
			return patched(`[{"op":"add","path":"/data","value":{}}]`)
		},
	})
	all := ruleFor("", "*", "configmaps", admissionregistrationv1.OperationAll)
	pick := func(value string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{"case": value}}
	}
	ignore, fail := admissionregistrationv1.Ignore, admissionregistrationv1.Fail
	nobody := "https://" + porttest.Closed(t) + "/x"
	service := func(name string) admissionregistrationv1.WebhookClientConfig {
		return admissionregistrationv1.WebhookClientConfig{CABundle: p.ca, Service: &admissionregistrationv1.ServiceReference{Namespace: "default", Name: name, Path: ptr("/no")}}
	}
	noCA := p.client("/yes")
	noCA.CABundle = nil
	validating(t, c, "a",
		admissionregistrationv1.ValidatingWebhook{Name: "no.example.com", ClientConfig: p.client("/no"), Rules: all, ObjectSelector: pick("no")},
		admissionregistrationv1.ValidatingWebhook{Name: "bare.example.com", ClientConfig: p.client("/bare"), Rules: all, ObjectSelector: pick("bare")},
		admissionregistrationv1.ValidatingWebhook{Name: "yes.example.com", ClientConfig: p.client("/yes"), Rules: all, ObjectSelector: pick("yes")},
		admissionregistrationv1.ValidatingWebhook{Name: "hang.example.com", ClientConfig: p.client("/hang"), Rules: all, ObjectSelector: pick("hang"), TimeoutSeconds: ptr(int32(1))},
		admissionregistrationv1.ValidatingWebhook{Name: "patch.example.com", ClientConfig: p.client("/patch"), Rules: all, ObjectSelector: pick("patch")},
		admissionregistrationv1.ValidatingWebhook{Name: "dead.example.com", ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: &nobody}, Rules: all, ObjectSelector: pick("dead"), FailurePolicy: &fail},
		admissionregistrationv1.ValidatingWebhook{Name: "ignored.example.com", ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: &nobody}, Rules: all, ObjectSelector: pick("ignored"), FailurePolicy: &ignore},
		admissionregistrationv1.ValidatingWebhook{Name: "lost.example.com", ClientConfig: p.client("/lost"), Rules: all, ObjectSelector: pick("lost")},
		admissionregistrationv1.ValidatingWebhook{Name: "ca.example.com", ClientConfig: noCA, Rules: all, ObjectSelector: pick("ca")},
		admissionregistrationv1.ValidatingWebhook{Name: "service.example.com", ClientConfig: service("none"), Rules: all, ObjectSelector: pick("service")},
		admissionregistrationv1.ValidatingWebhook{Name: "empty.example.com", ClientConfig: service("empty"), Rules: all, ObjectSelector: pick("empty")},
		admissionregistrationv1.ValidatingWebhook{Name: "cel.example.com", ClientConfig: p.client("/no"), Rules: all, ObjectSelector: pick("cel"),
			MatchConditions: []admissionregistrationv1.MatchCondition{{Name: "only-b", Expression: "object.metadata.name == 'b' && request.userInfo.username == 'test'"}}},
		admissionregistrationv1.ValidatingWebhook{Name: "namespace.example.com", ClientConfig: p.client("/no"), Rules: all, ObjectSelector: pick("namespace"), NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": "kube-public"}}},
	)
	if _, err := c.CoreV1().Services("default").Create(ctx, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "empty"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 443}}}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ name, namespace, object, want string }{
		{"no", "default", "", `admission webhook "no.example.com" denied the request: not today`},
		{"bare", "default", "", `admission webhook "bare.example.com" denied the request without explanation`},
		{"yes", "default", "", ""},
		{"hang", "default", "", `Internal error occurred: failed calling webhook "hang.example.com": failed to call webhook: Post "` + p.URL + `/hang?timeout=1s": context deadline exceeded`},
		{"patch", "default", "", `failed calling webhook "patch.example.com": received invalid webhook response: validating webhook may not return response.patch`},
		{"dead", "default", "", `Internal error occurred: failed calling webhook "dead.example.com": failed to call webhook: Post "` + nobody + `?timeout=10s": dial tcp ` + strings.TrimSuffix(strings.TrimPrefix(nobody, "https://"), "/x") + `: connect: connection refused`},
		{"ignored", "default", "", ""},
		{"lost", "default", "", `failed calling webhook "lost.example.com": failed to call webhook: the server could not find the requested resource`},
		{"ca", "default", "", `tls: failed to verify certificate: x509: certificate signed by unknown authority`},
		{"service", "default", "", `failed calling webhook "service.example.com": failed to call webhook: Post "https://none.default.svc:443/no?timeout=10s": service "none" not found`},
		{"empty", "default", "", `no endpoints available for service "empty"`},
		{"cel", "default", "a", ""},
		{"cel", "default", "b", `admission webhook "cel.example.com" denied the request: not today`},
		{"namespace", "default", "", ""},
		{"namespace", "kube-public", "", `admission webhook "namespace.example.com" denied the request: not today`},
		{"other", "default", "", ""},
	} {
		name := test.object
		if name == "" {
			name = test.name
		}
		_, err := c.CoreV1().ConfigMaps(test.namespace).Create(ctx, configMap(name, map[string]string{"case": test.name}), metav1.CreateOptions{})
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: %v\nwant %s", test.name, err, test.want)
		}
		if _, gone := c.CoreV1().ConfigMaps(test.namespace).Get(ctx, name, metav1.GetOptions{}); test.want != "" && !apierrors.IsNotFound(gone) {
			t.Errorf("%s is stored", test.name)
		}
	}
	if _, err := c.CoreV1().ConfigMaps("default").Create(ctx, configMap("n", map[string]string{"case": "no"}), metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("the code is the program's: %v", err)
	}
	// Deletions are asked about with the old object.
	if err := c.CoreV1().ConfigMaps("default").Delete(ctx, "yes", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if list := p.requests("/yes"); len(list) != 2 || list[1].Operation != "DELETE" || list[1].Object.Raw != nil || !strings.Contains(string(list[1].OldObject.Raw), `"name":"yes"`) {
		t.Errorf("deletion: %+v", list)
	}
}

// TestWebhookForms: hooks get the version that they ask for, of built-in and of
// custom kinds; custom objects are pruned and defaulted after a patch.
func TestWebhookForms(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s, c := start(t)
	d := dynamicClient(t, s)
	define(t, d, crontabs)
	p := startProgram(t, map[string]func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse{
		"/old": func(r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
			return patched(`[{"op":"add","path":"/spec/bogus","value":1},{"op":"replace","path":"/spec/image","value":"patched"}]`)
		},
		"/scale": func(r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
			return patched(`[{"op":"replace","path":"/spec/replicas","value":9}]`)
		},
	})
	mutating(t, c, "a",
		admissionregistrationv1.MutatingWebhook{Name: "old.example.com", ClientConfig: p.client("/old"), Rules: ruleFor("stable.example.com", "v1beta1", "crontabs", admissionregistrationv1.Create)},
		admissionregistrationv1.MutatingWebhook{Name: "scale.example.com", ClientConfig: p.client("/scale"), Rules: ruleFor("*", "*", "*/scale", admissionregistrationv1.Update)},
		admissionregistrationv1.MutatingWebhook{Name: "effects.example.com", ClientConfig: p.client("/old"), Rules: ruleFor("", "v1", "secrets", admissionregistrationv1.OperationAll), SideEffects: ptr(admissionregistrationv1.SideEffectClassNoneOnDryRun)},
	)
	made, err := d.Resource(cronTabs).Namespace("default").Create(ctx, cronTab(t, "a", `{cronSpec: "* * * * *"}`), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	image, _, _ := nested(made.Object, "spec", "image")
	if _, bogus, _ := nested(made.Object, "spec", "bogus"); bogus || image != "patched" {
		t.Errorf("after the patch: %v", made.Object)
	}
	r := p.requests("/old")[0]
	if r.Kind.Version != "v1beta1" || r.RequestKind.Version != "v1" || !strings.Contains(string(r.Object.Raw), `"apiVersion":"stable.example.com/v1beta1"`) {
		t.Errorf("%+v %s", r, r.Object.Raw)
	}
	scaled, err := d.Resource(cronTabs).Namespace("default").Patch(ctx, "a", types.MergePatchType, []byte(`{"spec":{"replicas":3}}`), metav1.PatchOptions{}, "scale")
	if got, _, _ := nested(scaled.Object, "spec", "replicas"); err != nil || got != int64(9) {
		t.Errorf("scale: %v, %v", scaled, err)
	}
	if r := p.requests("/scale")[0]; r.SubResource != "scale" || r.Kind.Kind != "Scale" || !strings.Contains(string(r.OldObject.Raw), `"kind":"Scale"`) {
		t.Errorf("scale: %+v %s", r, r.OldObject.Raw)
	}
}

// TestWebhooksOfSubresources: connections, bindings and evictions are asked about, too.
func TestWebhooksOfSubresources(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	_, c := start(t)
	account(t, c)
	p := startProgram(t, map[string]func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse{
		"/no": func(r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
			return &admissionv1.AdmissionResponse{Result: &metav1.Status{Message: string(r.Operation) + " " + r.Kind.Kind + " " + r.SubResource}}
		},
	})
	if _, err := c.CoreV1().Pods("default").Create(ctx, pod("p"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	validating(t, c, "a", admissionregistrationv1.ValidatingWebhook{Name: "no.example.com", ClientConfig: p.client("/no"), Rules: ruleFor("", "v1", "pods/*", admissionregistrationv1.OperationAll)})
	exec := c.CoreV1().RESTClient().Post().AbsPath("/api/v1/namespaces/default/pods/p/exec").Param("command", "sh").Param("stdin", "true").Do(ctx).Error()
	bind := c.CoreV1().Pods("default").Bind(ctx, &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Target: corev1.ObjectReference{Kind: "Node", Name: "n"}}, metav1.CreateOptions{})
	evict := c.PolicyV1().Evictions("default").Evict(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "default"}})
	for want, err := range map[string]error{"CONNECT PodExecOptions exec": exec, "CREATE Binding binding": bind, "CREATE Eviction eviction": evict} {
		if err == nil || !strings.Contains(err.Error(), `admission webhook "no.example.com" denied the request: `+want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if r := p.requests("/no")[0]; !strings.Contains(string(r.Object.Raw), `"stdin":true`) || !strings.Contains(string(r.Object.Raw), `"command":["sh"]`) {
		t.Errorf("options: %s", r.Object.Raw)
	}
}

// TestConversionWebhook: versions that differ in more than their name.
func TestConversionWebhook(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s, _ := start(t)
	d := dynamicClient(t, s)
	var calls atomic.Int32
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		in := apiextensionsv1.ConversionReview{}
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		out := &apiextensionsv1.ConversionResponse{UID: in.Request.UID, Result: metav1.Status{Status: metav1.StatusSuccess}}
		for _, raw := range in.Request.Objects {
			var o map[string]any
			_ = json.Unmarshal(raw.Raw, &o)
			spec := o["spec"].(map[string]any)
			if in.Request.DesiredAPIVersion == "sea.example.com/v2" {
				spec["metres"] = spec["miles"].(float64) * 1852
				delete(spec, "miles")
			} else {
				spec["miles"] = spec["metres"].(float64) / 1852
				delete(spec, "metres")
			}
			o["apiVersion"] = in.Request.DesiredAPIVersion
			data, _ := json.Marshal(o)
			out.ConvertedObjects = append(out.ConvertedObjects, runtime.RawExtension{Raw: data})
		}
		in.Response, in.Request = out, nil
		_ = json.NewEncoder(w).Encode(in)
	}))
	t.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	define(t, d, fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: beacons.sea.example.com}
spec:
  group: sea.example.com
  scope: Cluster
  names: {plural: beacons, singular: beacon, kind: Beacon}
  conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {url: %q, caBundle: %s}}}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {miles: {type: integer, maximum: 100}}}}}}}
  - name: v2
    served: true
    storage: false
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {metres: {type: integer}}}}}}
    additionalPrinterColumns: [{name: Metres, type: integer, jsonPath: .spec.metres}]
`, server.URL, base64.StdEncoding.EncodeToString(ca)))
	v1 := d.Resource(schema.GroupVersionResource{Group: "sea.example.com", Version: "v1", Resource: "beacons"})
	v2 := d.Resource(schema.GroupVersionResource{Group: "sea.example.com", Version: "v2", Resource: "beacons"})
	w, err := v2.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for _, name := range []string{"a", "b", "c"} {
		if _, err := v2.Create(ctx, fromYAML(t, "apiVersion: sea.example.com/v2\nkind: Beacon\nmetadata: {name: "+name+"}\nspec: {metres: 3704}"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	got, err := v1.Get(ctx, "a", metav1.GetOptions{})
	if miles, _, _ := nested(got.Object, "spec", "miles"); err != nil || miles != int64(2) {
		t.Errorf("v1: %v, %v", got, err)
	}
	before := calls.Load()
	list, err := v2.List(ctx, metav1.ListOptions{})
	if err != nil || len(list.Items) != 3 {
		t.Fatalf("%v, %v", list, err)
	}
	if metres, _, _ := nested(list.Items[1].Object, "spec", "metres"); metres != int64(3704) || calls.Load() != before {
		t.Errorf("v2: %v after %d more calls", list.Items[1].Object, calls.Load()-before)
	}
	if e := <-w.ResultChan(); e.Object.(interface{ GetAPIVersion() string }).GetAPIVersion() != "sea.example.com/v2" {
		t.Errorf("watch: %v", e)
	}
	if _, err := v2.Patch(ctx, "a", types.MergePatchType, []byte(`{"spec":{"metres":1852000}}`), metav1.PatchOptions{}); err == nil || !strings.Contains(err.Error(), "spec.miles: Invalid value: 1000: spec.miles in body should be less than or equal to 100") {
		t.Errorf("rules of the stored version: %v", err)
	}
	server.Close()
	if _, err := v2.Patch(ctx, "b", types.MergePatchType, []byte(`{"spec":{"metres":1852}}`), metav1.PatchOptions{}); err == nil || !strings.Contains(err.Error(), "conversion webhook for sea.example.com/v2, Kind=Beacon failed: Post") {
		t.Errorf("without the webhook: %v", err)
	}
}

// TestWebhookConfigurations are validated and defaulted.
func TestWebhookConfigurations(t *testing.T) {
	t.Parallel()
	_, c := start(t)
	url := "http://example.com"
	bad := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "bad"}, Webhooks: []admissionregistrationv1.ValidatingWebhook{{
		Name: "x", ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: &url}, TimeoutSeconds: ptr(int32(31)),
		Rules:           []admissionregistrationv1.RuleWithOperations{{Operations: []admissionregistrationv1.OperationType{"*", "CREATE"}, Rule: admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}}}},
		MatchConditions: []admissionregistrationv1.MatchCondition{{Name: "c", Expression: "object.x +"}},
	}}}
	_, err := c.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(t.Context(), bad, metav1.CreateOptions{})
	for _, want := range []string{
		`webhooks[0].name: Invalid value: "x": should be a domain with at least three segments separated by dots`,
		`webhooks[0].admissionReviewVersions: Required value: must specify one of v1, v1beta1`,
		`webhooks[0].rules[0].operations: Invalid value: ["*","CREATE"]: if '*' is present, must not specify other operations`,
		`webhooks[0].rules[0].resources: Required value`,
		`webhooks[0].sideEffects: Required value: must specify one of None, NoneOnDryRun`,
		`webhooks[0].timeoutSeconds: Invalid value: 31: the timeout value must be between 1 and 30 seconds`,
		`webhooks[0].clientConfig.url: Invalid value: "http": 'https' is the only allowed URL scheme; desired format: https://host[/path]`,
		`webhooks[0].matchConditions[0].expression: Invalid value: "object.x +": compilation failed`,
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
}
