package impersonation_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/periplus/periplus/apiserver/authz"
	"github.com/periplus/periplus/apiserver/impersonation"
)

// allowed authorizes what it lists, and notes what it was asked.
type allowed struct {
	list  []string
	asked []string
}

func (a *allowed) Authorize(_ context.Context, q *authz.Question) (authz.Decision, string, error) {
	text := fmt.Sprintf("%s %s/%s %s/%s", q.Verb, q.Group, q.Resource, q.Namespace, q.Name)
	if q.Subresource != "" {
		text = fmt.Sprintf("%s %s/%s/%s %s/%s", q.Verb, q.Group, q.Resource, q.Subresource, q.Namespace, q.Name)
	}
	if !q.IsResource {
		text = q.Verb + " " + q.Path
	}
	a.asked = append(a.asked, text)
	if slices.Contains(a.list, text) {
		return authz.Allow, "", nil
	}
	return authz.NoOpinion, "", nil
}

func TestCheck(t *testing.T) {
	t.Parallel()
	agent := &user.DefaultInfo{Name: "system:serviceaccount:ns:agent", Groups: []string{"system:authenticated"},
		Extra: map[string][]string{"authentication.kubernetes.io/node-name": {"n1"}}}
	alice := &user.DefaultInfo{Name: "alice"}
	bob := &user.DefaultInfo{Name: "bob"}
	const on = "impersonate-on:%s:list /pods ns/"
	may := func(way string, more ...string) []string { return append(more, fmt.Sprintf(on, way)) }
	for name, c := range map[string]struct {
		sender, wanted     *user.DefaultInfo
		may                []string
		want               string // the error
		groups, constraint string
	}{
		"own node": {agent, &user.DefaultInfo{Name: "system:node:n1"}, may("associated-node", "impersonate:associated-node authentication.k8s.io/nodes /*"),
			"", "system:nodes system:authenticated", "impersonate:associated-node"},
		"another's node": {agent, &user.DefaultInfo{Name: "system:node:n2"}, may("associated-node", "impersonate:associated-node authentication.k8s.io/nodes /*"),
			`pods is forbidden: User "system:serviceaccount:ns:agent" cannot impersonate-on:arbitrary-node:list resource "pods" in API group "" in the namespace "ns"`, "", ""},
		"any node": {alice, &user.DefaultInfo{Name: "system:node:n2"}, may("arbitrary-node", "impersonate:arbitrary-node authentication.k8s.io/nodes /n2"),
			"", "system:nodes system:authenticated", "impersonate:arbitrary-node"},
		"node, old way": {alice, &user.DefaultInfo{Name: "system:node:n2"}, []string{"impersonate /users /system:node:n2"}, "", "system:authenticated", ""},
		"account": {alice, &user.DefaultInfo{Name: "system:serviceaccount:a:b"}, may("serviceaccount", "impersonate:serviceaccount authentication.k8s.io/serviceaccounts a/b"),
			"", "system:serviceaccounts system:serviceaccounts:a system:authenticated", "impersonate:serviceaccount"},
		"account, nothing with it": {alice, &user.DefaultInfo{Name: "system:serviceaccount:a:b"}, []string{"impersonate:serviceaccount authentication.k8s.io/serviceaccounts a/b"},
			`cannot impersonate-on:serviceaccount:list resource "pods"`, "", ""},
		"account, with groups": {alice, &user.DefaultInfo{Name: "system:serviceaccount:a:b", Groups: []string{"g"}},
			[]string{"impersonate /serviceaccounts a/b", "impersonate /groups /g"}, "", "g system:authenticated", ""},
		"user": {alice, &user.DefaultInfo{Name: "bob", UID: "u", Groups: []string{"g"}, Extra: map[string][]string{"example.com/k": {"v"}}},
			may("user-info", "impersonate:user-info authentication.k8s.io/users /bob", "impersonate:user-info authentication.k8s.io/uids /u",
				"impersonate:user-info authentication.k8s.io/groups /g", "impersonate:user-info authentication.k8s.io/userextras/example.com/k /v"),
			"", "g system:authenticated", "impersonate:user-info"},
		"user, not the group": {alice, &user.DefaultInfo{Name: "bob", Groups: []string{"g"}}, may("user-info", "impersonate:user-info authentication.k8s.io/users /bob"),
			`groups.authentication.k8s.io "g" is forbidden: User "alice" cannot impersonate:user-info resource "groups" in API group "authentication.k8s.io" at the cluster scope`, "", ""},
		"many groups": {alice, &user.DefaultInfo{Name: "bob", Groups: strings.Fields("a b c d e")},
			may("user-info", "impersonate:user-info authentication.k8s.io/users /bob", "impersonate:user-info authentication.k8s.io/groups /*"),
			"", "a b c d e system:authenticated", "impersonate:user-info"},
		"masters": {alice, &user.DefaultInfo{Name: "bob", Groups: []string{"system:masters"}}, may("user-info", "impersonate:user-info authentication.k8s.io/users /bob",
			"impersonate:user-info authentication.k8s.io/groups /system:masters"), "impersonating the system:masters group is not allowed", "", ""},
		"masters, old way": {alice, &user.DefaultInfo{Name: "bob", Groups: []string{"system:masters"}}, []string{"impersonate /users /bob", "impersonate /groups /system:masters"},
			"", "system:masters system:authenticated", ""},
		"wrong key": {alice, &user.DefaultInfo{Name: "bob", Extra: map[string][]string{"Key": {"v"}}}, may("user-info", "impersonate:user-info authentication.k8s.io/users /bob"),
			"impersonating a non-lowercase key in extra is not allowed", "", ""},
		"anonymous":  {alice, &user.DefaultInfo{Name: "system:anonymous"}, []string{"impersonate /users /system:anonymous"}, "", "system:unauthenticated", ""},
		"user, none": {bob, &user.DefaultInfo{Name: "root"}, nil, `pods is forbidden: User "bob" cannot impersonate-on:user-info:list resource "pods" in API group "" in the namespace "ns"`, "", ""},
	} {
		mode := &allowed{list: c.may}
		as, constraint, err := impersonation.New(mode).Check(t.Context(), c.wanted, &authz.Question{User: c.sender, Verb: "list", IsResource: true, Version: "v1", Resource: "pods", Namespace: "ns"})
		switch {
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)), c.want == "" && err != nil:
			t.Errorf("%s: %v\nwant %s\nasked %q", name, err, c.want, mode.asked)
		case err == nil && (strings.Join(as.Groups, " ") != c.groups || constraint != c.constraint || as.Name != c.wanted.Name):
			t.Errorf("%s: %+v by %q, want %q by %q", name, as, constraint, c.groups, c.constraint)
		}
	}
}

// TestLastWay: of somebody who went the old way before, the others are not asked for again.
func TestLastWay(t *testing.T) {
	t.Parallel()
	mode := &allowed{list: []string{"impersonate /users /bob"}}
	c := impersonation.New(mode)
	for i, want := range []int{2, 1} { // impersonate-on and impersonate; then impersonate alone
		mode.asked = nil
		_, _, err := c.Check(t.Context(), &user.DefaultInfo{Name: "bob"}, &authz.Question{User: &user.DefaultInfo{Name: "alice"}, Verb: "get", Path: "/version"})
		if err != nil || len(mode.asked) != want {
			t.Errorf("request %d: %v, asked %q, want %d", i, err, mode.asked, want)
		}
	}
}

func TestWanted(t *testing.T) {
	t.Parallel()
	h := http.Header{"Impersonate-User": {"bob"}, "Impersonate-Group": {"a", "b"}, "Impersonate-Uid": {"u"}, "Impersonate-Extra-Example.com%2fkey": {"v"}, "Accept": {"x"}}
	u, err := impersonation.Wanted(h)
	if err != nil || u.Name != "bob" || u.UID != "u" || !slices.Equal(u.Groups, []string{"a", "b"}) || !slices.Equal(u.Extra["example.com/key"], []string{"v"}) || len(h) != 1 {
		t.Errorf("%+v %v, left %v", u, err, h)
	}
	if _, err := impersonation.Wanted(http.Header{"Impersonate-Group": {"a"}}); err == nil || !strings.Contains(err.Error(), "without impersonating a user name") {
		t.Error(err)
	}
	if u, err := impersonation.Wanted(http.Header{}); u != nil || err != nil {
		t.Error(u, err)
	}
}
