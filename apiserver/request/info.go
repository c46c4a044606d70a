package request

import (
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/api/validation/path"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Info is what a request asks for, read off its method, path and query.
type Info struct {
	// Resource requests: /api/v1/… and /apis/<group>/<version>/…
	IsResource  bool
	Verb        string // get, list, watch, create, update, patch, delete, deletecollection; else the method in lower case
	Group       string
	Version     string
	Namespace   string
	Resource    string
	Subresource string
	Name        string
	Rest        string // what follows the subresource ("proxy/<rest>"), without the leading slash
	Path        string

	// FieldSelector and LabelSelector are those of a list, watch or deletecollection, as
	// they were sent.
	FieldSelector string
	LabelSelector string
}

// GVR returns the group, version and resource.
func (i *Info) GVR() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: i.Group, Version: i.Version, Resource: i.Resource}
}

// namespaceSubresources are the paths below a namespace's name that belong to
// the namespace itself rather than naming a resource inside it.
var namespaceSubresources = map[string]bool{"status": true, "finalize": true}

// Parse reads r's place in the API. Paths with too few segments for a resource
// (discovery) are non-resource requests.
func Parse(r *http.Request) Info {
	i := Info{Path: r.URL.Path, Verb: strings.ToLower(r.Method)}
	next := segments(r.URL.Path)
	switch root, _ := next(); root {
	case "api":
	case "apis":
		if i.Group, _ = next(); i.Group == "" {
			return i
		}
	default:
		return i
	}
	i.Version, _ = next()
	first, ok := next()
	if i.Version == "" || !ok {
		return i
	}
	i.IsResource = true
	watchPath := first == "watch" // the old form /api/v1/watch/…
	if watchPath {
		if first, ok = next(); !ok {
			i.IsResource = false
			return i
		}
	}
	i.Resource = first
	if first == "namespaces" {
		if i.Name, ok = next(); ok {
			i.Namespace = i.Name
			if sub, more := next(); more {
				if namespaceSubresources[sub] {
					i.Subresource = sub
				} else {
					i.Resource, i.Name = sub, ""
					i.Name, _ = next()
					i.Subresource, _ = next()
				}
			}
		}
	} else {
		i.Name, _ = next()
		i.Subresource, _ = next()
	}
	if i.Subresource != "" {
		if rest, ok := next(); ok {
			i.Rest = r.URL.Path[strings.Index(r.URL.Path, "/"+i.Subresource+"/"+rest)+len(i.Subresource)+2:]
		}
	}
	i.Verb = verb(r, &i, watchPath)
	switch i.Verb {
	case "list", "watch", "deletecollection":
		i.narrow(r)
	}
	return i
}

// narrow notes the selectors. Whoever may see one object may watch it: the name that a
// list or watch is confined to by its field selector is the name of the request.
func (i *Info) narrow(r *http.Request) {
	if !strings.Contains(r.URL.RawQuery, "Selector") {
		return
	}
	query := r.URL.Query()
	i.FieldSelector, i.LabelSelector = query.Get("fieldSelector"), query.Get("labelSelector")
	if i.Name != "" || i.Verb == "deletecollection" || !strings.Contains(i.FieldSelector, "metadata.name") {
		return
	}
	s, err := fields.ParseSelector(i.FieldSelector)
	if err != nil {
		return // the request is refused later
	}
	name, _ := s.RequiresExactMatch("metadata.name")
	if len(path.IsValidPathSegmentName(name)) == 0 {
		i.Name = name
	}
}

func verb(r *http.Request, i *Info, watchPath bool) string {
	switch r.Method {
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		if i.Name == "" {
			return "deletecollection"
		}
		return "delete"
	case http.MethodGet, http.MethodHead:
		if i.Subresource == "" && (watchPath || i.Name == "" || r.URL.RawQuery != "") && watches(r, watchPath) {
			return "watch"
		}
		if i.Name == "" {
			return "list"
		}
		return "get"
	}
	return strings.ToLower(r.Method)
}

func watches(r *http.Request, watchPath bool) bool {
	if watchPath {
		return true
	}
	if !strings.Contains(r.URL.RawQuery, "watch=") {
		return false
	}
	switch w := r.URL.Query()["watch"]; {
	case len(w) == 0:
		return false
	default:
		return w[0] == "true" || w[0] == "1" || w[0] == ""
	}
}

// segments walks a path without allocating.
func segments(path string) func() (string, bool) {
	return func() (string, bool) {
		for path != "" {
			path = strings.TrimPrefix(path, "/")
			s, rest, _ := strings.Cut(path, "/")
			path = rest
			if rest != "" {
				path = "/" + rest
			}
			if s != "" {
				return s, true
			}
		}
		return "", false
	}
}
