package node

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/periplus/periplus/apiserver/authz"
)

// A rule says whether a node may do something with objects of one resource, and why not.
type rule func(node string, q *authz.Question) (allowed bool, reason string)

// A relation reports whether an object has to do with a node.
type relation func(node, namespace, name string) bool

// table has the resources of which a node may only touch what concerns it. What it
// writes into new objects is looked at by the admission plug-in NodeRestriction.
func (m *Mode) table() map[schema.GroupResource]rule {
	o := m.objects
	return map[schema.GroupResource]rule{
		{Resource: "secrets"}:                                              related(namespaced(o.secret)),
		{Resource: "configmaps"}:                                           related(namespaced(o.pods("configmaps"))),
		{Resource: "persistentvolumeclaims"}:                               claims(o.pods("persistentvolumeclaims")),
		{Resource: "persistentvolumes"}:                                    individual(o.volume),
		{Resource: "serviceaccounts"}:                                      accounts(o.pods("serviceaccounts")),
		{Resource: "nodes"}:                                                nodes,
		{Resource: "pods"}:                                                 pods(o.pod),
		{Group: "storage.k8s.io", Resource: "volumeattachments"}:           individual(o.attachment),
		{Group: "storage.k8s.io", Resource: "csinodes"}:                    csiNodes,
		{Group: "coordination.k8s.io", Resource: "leases"}:                 leases,
		{Group: "resource.k8s.io", Resource: "resourceclaims"}:             individual(o.pods("resourceclaims")),
		{Group: "resource.k8s.io", Resource: "resourceslices"}:             slicesOf(o.slice),
		{Group: "certificates.k8s.io", Resource: "podcertificaterequests"}: certificateRequests(o.certificateRequest),
	}
}

// ask asks the relation about the named object.
func (r relation) ask(node string, q *authz.Question) (bool, string) {
	switch {
	case q.Name == "":
		return false, "No Object name found"
	case !r(node, q.Namespace, q.Name):
		return false, unrelated(node)
	}
	return true, ""
}

// namespaced refuses what is asked of all namespaces.
func namespaced(r relation) rule {
	return func(node string, q *authz.Question) (bool, string) {
		if q.Namespace == "" {
			return false, "can only read namespaced object of this type"
		}
		return r.ask(node, q)
	}
}

// related allows reading.
func related(next rule) rule {
	return func(node string, q *authz.Question) (bool, string) {
		switch {
		case !q.ReadOnly():
			return false, "can only read resources of this type"
		case q.Subresource != "":
			return false, "cannot read subresource"
		}
		return next(node, q)
	}
}

// individual allows reading one by one.
func individual(r relation) rule {
	return func(node string, q *authz.Question) (bool, string) {
		switch {
		case q.Verb != "get":
			return false, "can only get individual resources of this type"
		case q.Subresource != "":
			return false, "cannot get subresource"
		}
		return r.ask(node, q)
	}
}

func claims(r relation) rule {
	get := individual(r)
	return func(node string, q *authz.Question) (bool, string) {
		if q.Subresource != "status" {
			return get(node, q)
		}
		if q.Verb != "update" && q.Verb != "patch" {
			return false, "can only get/update/patch this type"
		}
		return r.ask(node, q)
	}
}

func accounts(r relation) rule {
	read := related(namespaced(r))
	return func(node string, q *authz.Question) (bool, string) {
		switch {
		case q.Verb == "get" && q.Subresource == "":
			return read(node, q)
		case q.Verb != "create" || q.Name == "":
			return false, "can only create tokens for individual service accounts"
		case q.Subresource != "token":
			return false, "can only create token subresource of serviceaccount"
		}
		return r.ask(node, q)
	}
}

func leases(node string, q *authz.Question) (bool, string) {
	switch {
	case !slices.Contains([]string{"get", "create", "update", "patch", "delete"}, q.Verb):
		return false, "can only get, create, update, patch, or delete a node lease"
	case q.Namespace != corev1.NamespaceNodeLease:
		return false, fmt.Sprintf("can only access leases in the %q system namespace", corev1.NamespaceNodeLease)
	case q.Verb != "create" && q.Name != node: // the name of a new one is in its body
		return false, "can only access node lease with the same name as the requesting node"
	}
	return true, ""
}

func csiNodes(node string, q *authz.Question) (bool, string) {
	switch {
	case q.Subresource != "":
		return false, "cannot authorize CSINode subresources"
	case !slices.Contains([]string{"get", "create", "update", "patch", "delete"}, q.Verb):
		return false, "can only get, create, update, patch, or delete a CSINode"
	case q.Verb != "create" && q.Name != node:
		return false, "can only access CSINode with the same name as the requesting node"
	}
	return true, ""
}

func nodes(node string, q *authz.Question) (bool, string) {
	switch q.Subresource + "/" + q.Verb {
	case "/create", "/update", "/patch", "status/update", "status/patch":
		return true, ""
	case "/get", "/list", "/watch":
		switch q.Name {
		case node:
			return true, ""
		case "":
			return false, fmt.Sprintf("node '%s' cannot read all nodes, only its own Node object", node)
		}
		return false, fmt.Sprintf("node '%s' cannot read '%s', only its own Node object", node, q.Name)
	}
	return false, ""
}

func pods(r relation) rule {
	return func(node string, q *authz.Question) (bool, string) {
		switch q.Subresource + "/" + q.Verb {
		case "/get":
			return r.ask(node, q)
		case "/list", "/watch":
			switch {
			case q.Selects("spec.nodeName", node):
				return true, ""
			case q.Name != "":
				return r.ask(node, q)
			}
			return false, "can only list/watch pods with spec.nodeName field selector"
		case "/create", "/delete", "status/update", "status/patch", "eviction/create":
			return true, ""
		}
		return false, ""
	}
}

func slicesOf(r relation) rule {
	return func(node string, q *authz.Question) (bool, string) {
		if q.Subresource != "" {
			return false, "cannot authorize ResourceSlice subresources"
		}
		switch q.Verb {
		case "create":
			return true, ""
		case "get", "update", "patch", "delete":
			return r.ask(node, q)
		case "watch", "list", "deletecollection":
			if q.Selects("spec.nodeName", node) {
				return true, ""
			}
			return false, "can only list/watch/deletecollection resourceslices with nodeName field selector"
		}
		return false, "only the following verbs are allowed for a ResourceSlice: get, watch, list, create, update, patch, delete, deletecollection"
	}
}

func certificateRequests(r relation) rule {
	return func(node string, q *authz.Question) (bool, string) {
		if q.Subresource != "" {
			return false, "nodes may not access the status subresource of PodCertificateRequests"
		}
		switch q.Verb {
		case "create":
			return true, ""
		case "get":
			return r.ask(node, q)
		case "list", "watch":
			if q.Selects("spec.nodeName", node) {
				return true, ""
			}
			return false, "can only list/watch podcertificaterequests with nodeName field selector"
		}
		return false, fmt.Sprintf("nodes may not %s podcertificaterequests", q.Verb)
	}
}
