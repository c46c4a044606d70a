package abac_test

import (
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/periplus/periplus/apiserver/authz"
	"github.com/periplus/periplus/apiserver/authz/abac"
)

const policies = `# who may do what
{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":{"user":"alice","namespace":"*","resource":"*","apiGroup":"*"}}

{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":{"user":"bob","namespace":"a","resource":"pods","readonly":true}}
{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":{"group":"probes","nonResourcePath":"/healthz*","readonly":true}}
{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":{"user":"*","nonResourcePath":"/version"}}
{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":{"user":"eve","group":"ops","namespace":"a","resource":"services"}}
{"user":"old","resource":"pods","readonly":true}
{"group":"everything"}
`

func TestPolicies(t *testing.T) {
	t.Parallel()
	list, err := abac.Parse([]byte(policies))
	if err != nil {
		t.Fatal(err)
	}
	m := abac.Mode(list)
	for _, tt := range []struct {
		who  string // user,group…
		what string // verb group:resource namespace, or verb /path
		want bool
	}{
		{"alice", "delete apps:deployments b", true},
		{"alice", "get nodes -", true},
		{"alice", "get /healthz", false},
		{"bob", "get pods a", true},
		{"bob", "watch pods a", true},
		{"bob", "create pods a", false},
		{"bob", "get pods b", false},
		{"bob", "get apps:pods a", false},
		{"carol,probes", "get /healthz", true},
		{"carol,probes", "get /healthz/etcd", true},
		{"carol,probes", "post /healthz", false},
		{"carol,probes", "get /metrics", false},
		{"carol,probes", "get pods a", false},
		{"dave,system:authenticated", "get /version", true},
		{"dave,system:unauthenticated", "get /version", false},
		{"eve", "get services a", false},
		{"eve,ops", "get services a", true},
		{"mallory,ops", "get services a", false},
		{"old", "list pods anywhere", true},
		{"old", "list metrics.k8s.io:pods anywhere", true},
		{"old", "delete pods anywhere", false},
		{"old", "get /version", false},
		{"x,everything", "delete secrets b", true},
		{"x,everything", "get /metrics", true},
	} {
		groups := strings.Split(tt.who, ",")
		word := strings.Fields(tt.what)
		q := &authz.Question{User: &user.DefaultInfo{Name: groups[0], Groups: groups[1:]}, Verb: word[0], Path: word[1]}
		if len(word) > 2 {
			q.IsResource, q.Path, q.Namespace = true, "", strings.TrimPrefix(word[2], "-")
			group, resource, ok := strings.Cut(word[1], ":")
			if !ok {
				group, resource = "", group
			}
			q.Group, q.Resource = group, resource
		}
		d, _, err := m.Authorize(t.Context(), q)
		if got := d == authz.Allow; got != tt.want || err != nil {
			t.Errorf("%s: %s: allowed %v (%v)", tt.who, tt.what, got, err)
		}
	}
	rules, err := m.Rules(&user.DefaultInfo{Name: "bob"}, "a")
	if err != nil || len(rules) != 1 || strings.Join(rules[0].Verbs, " ") != "get list watch" {
		t.Errorf("bob's rules in a: %v, %v", rules, err)
	}
}

func TestBadPolicies(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"apiVersion":"abac.authorization.kubernetes.io/v2","kind":"Policy","spec":{}}`: `line 1: {"apiVersion":"abac.authorization.kubernetes.io/v2","kind":"Policy","spec":{}}: no kind "Policy" is registered for version "abac.authorization.kubernetes.io/v2"`,
		`{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy"}`:      "spec: required",
		"\n# fine\n{": "line 3: {: unexpected end of JSON input",
	} {
		if _, err := abac.Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(policies))
	f.Fuzz(func(t *testing.T, data []byte) {
		list, err := abac.Parse(data)
		if err != nil {
			return
		}
		// Whoever has no name and no group is allowed nothing.
		q := &authz.Question{User: &user.DefaultInfo{}, IsResource: true, Verb: "get", Resource: "pods"}
		if d, _, _ := abac.Mode(list).Authorize(t.Context(), q); d == authz.Allow {
			t.Errorf("%q allows nobody to get pods", data)
		}
	})
}
