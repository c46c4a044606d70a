package node

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/periplus/periplus/apiserver/authz"
	"github.com/periplus/periplus/apiserver/registry"
)

const userPrefix = "system:node:"

var pods = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

// Mode is the authorization mode Node.
type Mode struct {
	objects registry.Reader
	general func(q *authz.Question) bool
}

var _ authz.Mode = (*Mode)(nil)

// New returns the mode. general answers from the rules of the cluster role
// system:node.
func New(objects registry.Reader, general func(*authz.Question) bool) *Mode {
	return &Mode{objects, general}
}

// NameOf returns the node that u is, if it is one.
func NameOf(u user.Info) (string, bool) {
	name, ok := strings.CutPrefix(u.GetName(), userPrefix)
	if !ok || name == "" {
		return "", false
	}
	if slices.Contains(u.GetGroups(), user.NodesGroup) {
		return name, true
	}
	return "", false
}

// Authorize implements authz.Mode.
func (m *Mode) Authorize(_ context.Context, q *authz.Question) (authz.Decision, string) {
	node, ok := NameOf(q.User)
	if !ok {
		return authz.NoOpinion, ""
	}
	if q.IsResource && q.Group == "" {
		switch q.Resource {
		case "secrets", "configmaps", "persistentvolumeclaims":
			if q.Subresource == "" {
				return m.used(node, q)
			}
		case "serviceaccounts":
			if q.Subresource == "token" && q.Verb == "create" {
				return m.used(node, q)
			}
		}
	}
	if m.general(q) {
		return authz.Allow, ""
	}
	return authz.NoOpinion, ""
}

// used allows reading a thing that a pod of the node uses.
func (m *Mode) used(node string, q *authz.Question) (authz.Decision, string) {
	switch q.Verb {
	case "get", "list", "watch", "create":
	default:
		return authz.NoOpinion, "can only read resources of this type"
	}
	if q.Name == "" {
		return authz.NoOpinion, "can only read namespaced object of this type"
	}
	list, err := m.objects.List(pods, q.Namespace)
	if err == nil {
		for _, obj := range list {
			if p := obj.(*corev1.Pod); p.Spec.NodeName == node && uses(p, q.Resource, q.Name) {
				return authz.Allow, ""
			}
		}
	}
	return authz.NoOpinion, fmt.Sprintf("no relationship found between node '%s' and this object", node)
}
