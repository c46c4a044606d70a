package apiserver_test

import (
	"bufio"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/periplus/periplus/apiserver"
	"github.com/periplus/periplus/apiserver/audit"
)

// TestAudit: what the policy wants of requests that succeed, fail and are not allowed.
func TestAudit(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	policy, path := filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "audit.log")
	text := `
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
omitManagedFields: true
rules:
- {level: Metadata, resources: [{group: "", resources: [secrets]}], namespaces: [default]}
- {level: RequestResponse, resources: [{group: "", resources: [configmaps]}], namespaces: [default]}
- {level: Metadata, users: ["system:anonymous"]}
- {level: None}
`
	if err := os.WriteFile(policy, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s, c := startWith(t, func(config *apiserver.Config) {
		config.Audit = audit.Defaults()
		config.Audit.PolicyFile, config.Audit.LogPath = policy, path
	})
	const maps = "/api/v1/namespaces/default/configmaps"
	allow(t, c, "jane", "impersonate", "", "users")
	send(t, s, http.MethodPost, maps, "application/yaml", []byte("kind: ConfigMap\napiVersion: v1\nmetadata: {name: m}\ndata: {a: b}\n"))
	send(t, s, http.MethodPost, maps, "application/json", []byte(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"m"}}`))
	send(t, s, http.MethodPatch, maps+"/m?fieldManager=f", "application/apply-patch+yaml", []byte("kind: ConfigMap\napiVersion: v1\ndata: {c: d}\n"))
	send(t, s, http.MethodPost, "/api/v1/namespaces/default/secrets", "application/json", []byte(`{"kind":"Secret","apiVersion":"v1","metadata":{"name":"s"},"stringData":{"p":"hush"}}`))
	send(t, s, http.MethodGet, maps+"/m", "", nil, "Impersonate-User", "joe")
	send(t, s, http.MethodGet, maps, "", nil, "Accept", "application/vnd.kubernetes.protobuf", "Audit-Id", "abc")
	send(t, s, http.MethodGet, maps+"/m", "", nil, "Accept", "application/vnd.kubernetes.protobuf")
	send(t, s, http.MethodGet, "/api/v1/namespaces/other/configmaps", "", nil)

	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []auditv1.Event
	for in := bufio.NewScanner(f); in.Scan(); {
		if strings.Contains(in.Text(), "hush") || strings.Contains(in.Text(), "managedFields") {
			t.Errorf("%s", in.Text())
		}
		e := auditv1.Event{}
		if err := json.Unmarshal(in.Bytes(), &e); err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	for i, want := range []struct {
		verb, resource  string
		code            int32
		sent, answered  string // part of the objects
		decision, other string
	}{
		{"create", "configmaps", 201, `"a":"b"`, `"uid"`, "allow", ""},
		{"create", "configmaps", 409, `"name":"m"`, `"AlreadyExists"`, "allow", ""},
		{"patch", "configmaps", 200, `"c":"d"`, `"c":"d"`, "allow", ""},
		{"create", "secrets", 201, "", "", "allow", ""},
		{"get", "configmaps", 403, "", `"Forbidden"`, "forbid", "joe"},
		{"list", "configmaps", 200, "", `"items":[{`, "allow", "abc"},
		{"get", "configmaps", 200, "", `"name":"m"`, "allow", ""},
	} {
		if i >= len(all) {
			t.Fatalf("%d events", len(all))
		}
		e := all[i]
		sent, answered := "", ""
		if e.RequestObject != nil {
			sent = string(e.RequestObject.Raw)
		}
		if e.ResponseObject != nil {
			answered = string(e.ResponseObject.Raw)
		}
		switch {
		case e.Verb != want.verb || e.ObjectRef.Resource != want.resource || e.ResponseStatus.Code != want.code || e.Stage != auditv1.StageResponseComplete,
			!strings.Contains(sent, want.sent) || want.sent == "" && sent != "",
			!strings.Contains(answered, want.answered) || want.answered == "" && answered != "",
			e.Annotations["authorization.k8s.io/decision"] != want.decision,
			want.other == "joe" && e.ImpersonatedUser.Username != "joe",
			want.other == "abc" && e.AuditID != "abc":
			t.Errorf("%d: %+v\nsent %s\nanswered %s", i, e, sent, answered)
		}
	}
	if len(all) != 7 {
		t.Errorf("%d events, want 7", len(all))
	}
}
