package impersonation

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/periplus/periplus/apiserver/authz"
)

// A way is one by which somebody may act as somebody else.
type way struct {
	name string // "" is the legacy one
	// is reports whether it is for this identity, and this sender.
	is func(wanted *user.DefaultInfo, sender user.Info) bool
	// as, if not nil, changes a question before it is put.
	as func(q *authz.Question)
}

// ways are in the order in which they are tried.
var ways = []way{
	{"associated-node", func(wanted *user.DefaultInfo, sender user.Info) bool {
		node, ok := nodeOf(wanted.Name)
		_, _, err := serviceaccount.SplitUsername(sender.GetName())
		at := sender.GetExtra()[serviceaccount.NodeNameKey]
		return ok && onlyName(wanted) && err == nil && len(at) == 1 && at[0] == node
	}, ofAnyNode},
	{"arbitrary-node", func(wanted *user.DefaultInfo, _ user.Info) bool {
		_, ok := nodeOf(wanted.Name)
		return ok && onlyName(wanted)
	}, nil},
	{"serviceaccount", func(wanted *user.DefaultInfo, _ user.Info) bool {
		_, _, err := serviceaccount.SplitUsername(wanted.Name)
		return err == nil && onlyName(wanted)
	}, nil},
	{"user-info", func(wanted *user.DefaultInfo, _ user.Info) bool {
		_, node := nodeOf(wanted.Name)
		_, _, err := serviceaccount.SplitUsername(wanted.Name)
		return !node && err != nil
	}, nil},
	{"", func(*user.DefaultInfo, user.Info) bool { return true }, nil},
}

func (w *way) verb() string {
	if w.name == "" {
		return "impersonate"
	}
	return "impersonate:" + w.name
}

// ofAnyNode makes the questions of an agent the same on all nodes: that it runs on the
// node has been looked at, and permission is for all of them.
func ofAnyNode(q *authz.Question) {
	keys := make([]string, 0, len(q.User.GetExtra()))
	for key := range q.User.GetExtra() {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	q.User = &user.DefaultInfo{Name: q.User.GetName(), UID: q.User.GetUID(), Groups: q.User.GetGroups(),
		Extra: map[string][]string{"authentication.kubernetes.io/associated-node-keys": keys}}
	if q.Verb == "impersonate:associated-node" {
		q.Name = "*"
	}
}

// nodeOf returns the node whose user has this name.
func nodeOf(username string) (string, bool) {
	name, ok := strings.CutPrefix(username, "system:node:")
	return name, ok && len(validation.NameIsDNSSubdomain(name, false)) == 0
}

func onlyName(u *user.DefaultInfo) bool {
	return u.UID == "" && len(u.Groups) == 0 && len(u.Extra) == 0
}
