package apiserver_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
)

// Whatever a client sends, the answer is the client's fault or a success: an internal
// error is what a handler answers that has panicked or got lost. Nothing is stored.

func lost(w *httptest.ResponseRecorder) bool {
	return w.Code >= http.StatusInternalServerError && strings.Contains(w.Body.String(), `"reason":"InternalError"`)
}

// bodies are the forms in which objects come.
var bodies = []string{"application/json", "application/yaml", runtime.ContentTypeProtobuf, "application/cbor"}

var collections = []string{
	"/api/v1/namespaces/default/pods",
	"/api/v1/namespaces/default/services",
	"/apis/apps/v1/namespaces/default/deployments",
	"/apis/batch/v1/namespaces/default/cronjobs",
	"/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers",
	"/apis/networking.k8s.io/v1/namespaces/default/ingresses",
	"/apis/rbac.authorization.k8s.io/v1/clusterroles",
	"/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
	"/apis/stable.example.com/v1/namespaces/default/crontabs",
}

func FuzzBodies(f *testing.F) {
	f.Add(uint8(0), uint8(0), []byte(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i","resources":{"limits":{"cpu":"1"}}}]}}`))
	f.Add(uint8(0), uint8(1), []byte(`{"kind":"Service","apiVersion":"v1","metadata":{"name":"s"},"spec":{"ports":[{"port":80,"targetPort":"http"}],"selector":{"a":"b"}}}`))
	f.Add(uint8(1), uint8(2), []byte("kind: Deployment\napiVersion: apps/v1\nmetadata: {name: d, labels: &l {a: b}}\nspec:\n  selector: {matchLabels: *l}\n  template: {metadata: {labels: *l}, spec: {containers: [{name: c, image: i}]}}\n"))
	f.Add(uint8(1), uint8(3), []byte("kind: CronJob\napiVersion: batch/v1\nmetadata: {name: c}\nspec: {schedule: '*/5 * * * *', jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}}\n"))
	f.Add(uint8(2), uint8(0), protobuf(f, "v1", "Pod", append(field(1, field(1, []byte("p"))), field(2, field(2, append(field(1, []byte("c")), field(2, []byte("i"))...)))...)))
	f.Add(uint8(2), uint8(7), protobuf(f, "apiextensions.k8s.io/v1", "CustomResourceDefinition", field(2, field(7, field(4, field(1, nest(29, 20)))))))
	f.Add(uint8(3), uint8(0), []byte("\xd9\xd9\xf7\xa2Dkind\x43PodJapiVersion\x42v1"))
	f.Add(uint8(1), uint8(7), []byte(crontabs))
	f.Add(uint8(0), uint8(8), []byte(`{"kind":"CronTab","apiVersion":"stable.example.com/v1","metadata":{"name":"t"},"spec":{"cronSpec":"* * * * *","port":"http","loose":{"a":[1,2.5,null]}}}`))
	s, _ := start(f)
	define(f, dynamicClient(f, s), crontabs)
	f.Fuzz(func(t *testing.T, media, kind uint8, body []byte) {
		path := collections[int(kind)%len(collections)] + "?dryRun=All"
		if w := send(t, s, http.MethodPost, path, bodies[int(media)%len(bodies)], body); lost(w) {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	})
}

func FuzzPatches(f *testing.F) {
	patches := []string{"application/json-patch+json", "application/merge-patch+json", "application/strategic-merge-patch+json", "application/apply-patch+yaml", "application/apply-patch+cbor"}
	f.Add(uint8(0), uint8(0), []byte(`[{"op":"add","path":"/metadata/labels/a~1b","value":"c"},{"op":"copy","from":"/spec","path":"/spec/x"},{"op":"move","from":"/a","path":"/b"},{"op":"test","path":"/spec/containers/-1","value":null}]`))
	f.Add(uint8(1), uint8(1), []byte(`{"spec":{"replicas":null,"template":{"metadata":{"labels":{"a":"c"}}}}}`))
	f.Add(uint8(2), uint8(1), []byte(`{"spec":{"template":{"spec":{"$setElementOrder/containers":[{"name":"c"}],"containers":[{"$patch":"delete","name":"c"},{"name":"d","image":"e","ports":[{"containerPort":1}],"$retainKeys":["name"]}]}}}}`))
	f.Add(uint8(2), uint8(0), []byte(`{"metadata":{"$deleteFromPrimitiveList/finalizers":["x"],"finalizers":["y"]},"spec":{"$patch":"replace"}}`))
	f.Add(uint8(3), uint8(1), []byte("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: there}\nspec: {replicas: 3, template: {spec: {containers: [{name: c, env: [{name: A, value: B}]}]}}}\n"))
	f.Add(uint8(3), uint8(2), []byte("apiVersion: stable.example.com/v1\nkind: CronTab\nmetadata: {name: there}\nspec: {cronSpec: '* * * * *', replicas: 2}\n"))
	f.Add(uint8(4), uint8(0), []byte("\xd9\xd9\xf7\xa2Dkind\x43PodJapiVersion\x42v1"))
	s, _ := start(f)
	define(f, dynamicClient(f, s), crontabs)
	objects := []string{collections[0] + "/there", collections[2] + "/there", collections[8] + "/there", collections[2] + "/there/scale", collections[0] + "/there/status"}
	for path, body := range map[string]string{
		collections[0]: `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"there","finalizers":["example.com/x"]},"spec":{"containers":[{"name":"c","image":"i"}]}}`,
		collections[2]: `{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"name":"there"},"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}`,
		collections[8]: `{"kind":"CronTab","apiVersion":"stable.example.com/v1","metadata":{"name":"there"},"spec":{"cronSpec":"* * * * *"}}`,
	} {
		if path == collections[0] { // the pod's account is made by a controller
			body = strings.Replace(body, `"spec":{`, `"spec":{"automountServiceAccountToken":false,`, 1)
			send(f, s, http.MethodPost, "/api/v1/namespaces/default/serviceaccounts", bodies[0], []byte(`{"kind":"ServiceAccount","apiVersion":"v1","metadata":{"name":"default"}}`))
		}
		if w := send(f, s, http.MethodPost, path, bodies[0], []byte(body)); w.Code != http.StatusCreated {
			f.Fatalf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	f.Fuzz(func(t *testing.T, kind, object uint8, body []byte) {
		path := objects[int(object)%len(objects)] + "?dryRun=All&fieldManager=f&force=true"
		media := patches[int(kind)%len(patches)]
		if !strings.Contains(media, "apply") {
			path = strings.TrimSuffix(path, "&force=true")
		}
		if w := send(t, s, http.MethodPatch, path, media, body); lost(w) {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	})
}

func FuzzQueries(f *testing.F) {
	f.Add("a in (b, c),!d,e!=f,g>1", "metadata.name=x,status.phase!=Running", "", "", "")
	f.Add("", `spec.nodeName=a\,b\\`, "", "", "10")
	f.Add("", "", "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiIvcmVnaXN0cnkvcG9kcy9kZWZhdWx0L3gifQ", "", "5")
	f.Add("", "", "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6LTEsInN0YXJ0IjoiL3JlZ2lzdHJ5L3BvZHMvIn0", "0", "1")
	f.Add("x", "", "", "1", "-1")
	s, _ := start(f)
	f.Fuzz(func(t *testing.T, labels, fields, token, revision, limit string) {
		if len(revision) > 4 { // one of the future is waited for
			revision = ""
		}
		q := url.Values{}
		for key, value := range map[string]string{"labelSelector": labels, "fieldSelector": fields, "continue": token, "limit": limit} {
			if value != "" {
				q.Set(key, value)
			}
		}
		if revision == "0" || revision == "1" {
			q.Set("resourceVersion", revision)
		}
		for _, path := range []string{"/api/v1/pods", "/api/v1/namespaces/default/pods"} {
			if w := send(t, s, http.MethodGet, path+"?"+q.Encode(), "", nil); lost(w) {
				t.Errorf("%s: %d %s", q.Encode(), w.Code, w.Body)
			}
		}
	})
}
