package openapi

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/periplus/periplus/apiserver/rest"
)

// An operation is one method of one path, in no version of OpenAPI.
type operation struct {
	id, description, action, tag string
	gvk                          schema.GroupVersionKind // empty for discovery
	query                        []parameter
	body                         string // model name
	bodyOptional, patch          bool
	custom                       bool           // neither protobuf nor strategic patches
	answers                      map[int]string // model names by code; "" for text
	produces                     []string
}

// A pathItem is a path with its operations by lower-case method.
type pathItem struct {
	parameters []parameter
	operations map[string]*operation
}

// paths collects the operations of group versions.
type paths map[string]*pathItem

func (p paths) add(path string, params []parameter, method string, op *operation) {
	item := p[path]
	if item == nil {
		item = &pathItem{parameters: params, operations: map[string]*operation{}}
		p[path] = item
	}
	item.operations[strings.ToLower(method)] = op
}

// A describer makes the operations of one resource.
type describer struct {
	paths   paths
	group   *group
	listing *rest.Listing
	models  models
	query   *queries
	kind    string // for ids: "NamespacedPod"
	prefix  string // for ids: "CoreV1"
	tag     string
	custom  bool
	base    string // "/api/v1/"
	objects string // "/api/v1/namespaces/{namespace}/pods"
}

// addGroup adds the paths of a group version.
func (p paths) addGroup(g *group, m map[string]models, q *queries) {
	prefix, tag := idPrefix(g.gv), tagOf(g.gv)
	p.add("/"+g.path()+"/", nil, http.MethodGet, &operation{
		id: "get" + prefix + "APIResources", description: "get available resources", tag: tag,
		answers: map[int]string{http.StatusOK: resourceListModel}, produces: produced(false),
	})
	for i := range g.list {
		l := &g.list[i]
		d := &describer{
			paths: p, group: g, listing: l, models: m[l.GVR.Resource], query: q, prefix: prefix, tag: tag,
			base: "/" + g.path() + "/", kind: l.GVK.Kind, custom: m[l.GVR.Resource].object == customName(l.GVK),
		}
		d.objects = d.base + l.GVR.Resource
		if l.Resource.Namespaced {
			d.objects = d.base + "namespaces/{namespace}/" + l.GVR.Resource
			d.kind = "Namespaced" + l.GVK.Kind
		}
		d.describe()
	}
}

// idPrefix is the part of operation ids that names the group version: "RbacAuthorizationV1".
func idPrefix(gv schema.GroupVersion) string {
	name := strings.TrimSuffix(gv.Group, ".k8s.io")
	if name == "" {
		name = "core"
	}
	var out strings.Builder
	for _, label := range append(strings.Split(name, "."), gv.Version) {
		out.WriteString(strings.ToUpper(label[:1]) + label[1:])
	}
	return out.String()
}

// tagOf is the tag of a group version: "rbacAuthorization_v1".
func tagOf(gv schema.GroupVersion) string {
	id := strings.TrimSuffix(idPrefix(gv), strings.ToUpper(gv.Version[:1])+gv.Version[1:])
	return strings.ToLower(id[:1]) + id[1:] + "_" + gv.Version
}

func produced(custom bool, more ...string) []string {
	out := []string{"application/json", "application/yaml"}
	if !custom {
		out = append(out, "application/vnd.kubernetes.protobuf", "application/cbor")
	}
	return append(out, more...)
}

func (d *describer) has(verb string) bool {
	r := d.listing.Resource
	switch {
	case r.Create != nil:
		return verb == "create"
	case r.Verbs != nil:
		return slices.Contains(r.Verbs, verb)
	}
	return true
}

// op starts an operation. The id is made of the action's word, the group version and what.
func (d *describer) op(word, what, action, description string) *operation {
	return &operation{
		id: word + d.prefix + what, action: action, description: description, tag: d.tag,
		gvk: d.listing.GVK, custom: d.custom, produces: produced(d.custom),
	}
}

func (d *describer) describe() {
	kind, object := d.listing.GVK.Kind, d.models.object
	all, one := d.params(false), d.params(true)
	name := d.objects + "/{name}"
	if d.has("list") {
		d.list(d.objects, d.kind, all)
		if d.listing.Resource.Namespaced {
			d.list(d.base+d.listing.GVR.Resource, kind+"ForAllNamespaces", []parameter{pretty})
		}
	}
	if d.has("create") {
		op := d.op("create", d.kind, "post", "create a "+kind)
		op.query, op.body = d.query.create, object
		op.answers = map[int]string{http.StatusOK: object, http.StatusCreated: object, http.StatusAccepted: object}
		d.paths.add(d.objects, all, http.MethodPost, op)
	}
	if d.has("deletecollection") {
		op := d.op("delete", "Collection"+d.kind, "deletecollection", "delete collection of "+kind)
		op.query, op.body, op.bodyOptional = merged(d.query.list, d.query.delete), deleteOptionsModel, true
		op.query = slices.DeleteFunc(op.query, func(p parameter) bool { return p.name == "watch" || p.name == "allowWatchBookmarks" })
		op.answers = map[int]string{http.StatusOK: statusModel}
		d.paths.add(d.objects, all, http.MethodDelete, op)
	}
	if d.has("get") {
		d.read(name, d.kind, "read the specified "+kind, object, one)
	}
	if d.has("update") {
		d.replace(name, d.kind, "replace the specified "+kind, object, one)
	}
	if d.has("patch") {
		d.patch(name, d.kind, "partially update the specified "+kind, object, one)
	}
	if d.has("delete") {
		answer := statusModel
		if answersWithObject.Has(d.listing.GVR.Resource) {
			answer = object
		}
		op := d.op("delete", d.kind, "delete", "delete a "+kind)
		op.query, op.body, op.bodyOptional = d.query.delete, deleteOptionsModel, true
		op.answers = map[int]string{http.StatusOK: answer, http.StatusAccepted: answer}
		d.paths.add(name, one, http.MethodDelete, op)
	}
	if d.has("watch") {
		d.watches()
	}
	d.subresources(name, one)
}

// list describes GET of a collection, which is a watch when asked for.
func (d *describer) list(path, what string, params []parameter) {
	op := d.op("list", what, "list", "list or watch objects of kind "+d.listing.GVK.Kind)
	op.query = d.query.list
	op.answers = map[int]string{http.StatusOK: d.models.list}
	op.produces = append(op.produces, "application/json;stream=watch")
	if !d.custom {
		op.produces = append(op.produces, "application/vnd.kubernetes.protobuf;stream=watch", "application/cbor-seq")
	}
	d.paths.add(path, params, http.MethodGet, op)
}

// watches describes the old paths below /watch.
func (d *describer) watches() {
	kind := d.listing.GVK.Kind
	add := func(path, what, action, description string, params []parameter) {
		op := d.op("watch", what, action, description)
		op.answers = map[int]string{http.StatusOK: watchEventModel}
		op.produces = append(op.produces, "application/json;stream=watch")
		if !d.custom {
			op.produces = append(op.produces, "application/vnd.kubernetes.protobuf;stream=watch", "application/cbor-seq")
		}
		d.paths.add(d.base+"watch/"+strings.TrimPrefix(path, d.base), merged(params, d.query.list), http.MethodGet, op)
	}
	lists := fmt.Sprintf("watch individual changes to a list of %s. deprecated: use the 'watch' parameter with a list operation instead.", kind)
	add(d.objects, d.kind+"List", "watchlist", lists, d.params(false))
	if d.listing.Resource.Namespaced {
		add(d.base+d.listing.GVR.Resource, kind+"ListForAllNamespaces", "watchlist", lists, []parameter{pretty})
	}
	add(d.objects+"/{name}", d.kind, "watch", fmt.Sprintf("watch changes to an object of kind %s. deprecated: use the 'watch' parameter with a list operation instead, filtered to a single item with the 'fieldSelector' parameter.", kind), d.params(true))
}

func (d *describer) read(path, what, description, model string, params []parameter) *operation {
	op := d.op("read", what, "get", description)
	op.answers = map[int]string{http.StatusOK: model}
	d.paths.add(path, params, http.MethodGet, op)
	return op
}

func (d *describer) replace(path, what, description, model string, params []parameter) *operation {
	op := d.op("replace", what, "put", description)
	op.query, op.body = d.query.update, model
	op.answers = map[int]string{http.StatusOK: model, http.StatusCreated: model}
	d.paths.add(path, params, http.MethodPut, op)
	return op
}

func (d *describer) patch(path, what, description, model string, params []parameter) *operation {
	op := d.op("patch", what, "patch", description)
	op.query, op.body, op.patch = d.query.patch, patchModel, true
	op.answers = map[int]string{http.StatusOK: model, http.StatusCreated: model}
	d.paths.add(path, params, http.MethodPatch, op)
	return op
}

// subresources describes status, scale, the further views and those with a life of their own.
func (d *describer) subresources(name string, one []parameter) {
	r, kind := d.listing.Resource, d.listing.GVK.Kind
	view := func(sub, model string, gvk schema.GroupVersionKind, verbs ...string) {
		path, what := name+"/"+sub, d.kind+strings.ToUpper(sub[:1])+sub[1:]
		var ops []*operation
		for _, verb := range verbs {
			switch verb {
			case "get":
				ops = append(ops, d.read(path, what, "read "+sub+" of the specified "+kind, model, one))
			case "update":
				ops = append(ops, d.replace(path, what, "replace "+sub+" of the specified "+kind, model, one))
			case "patch":
				ops = append(ops, d.patch(path, what, "partially update "+sub+" of the specified "+kind, model, one))
			case "create":
				op := d.op("create", what, "post", "create "+sub+" of a "+kind)
				op.query, op.body = d.query.create, model
				op.answers = map[int]string{http.StatusOK: model, http.StatusCreated: model, http.StatusAccepted: model}
				d.paths.add(path, one, http.MethodPost, op)
				ops = append(ops, op)
			}
		}
		for _, op := range ops {
			op.gvk = gvk
		}
	}
	if r.Status != nil {
		view("status", d.models.object, d.listing.GVK, "get", "update", "patch")
	}
	if r.Scale != nil {
		gvk := schema.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"}
		view("scale", modelOf(gvk), gvk, "get", "update", "patch")
	}
	for _, sub := range slices.Sorted(maps.Keys(r.Views)) {
		verbs := []string{"get", "update", "patch"}
		if sub == "finalize" {
			verbs = []string{"update"}
		}
		view(sub, d.models.object, d.listing.GVK, verbs...)
	}
	for _, sub := range slices.Sorted(maps.Keys(d.listing.Subresources)) {
		s := d.listing.Subresources[sub]
		switch {
		case isOptions(s.Kind()):
			d.connect(name, sub, s, one)
		case sub == "log":
			op := d.read(name+"/log", d.kind+"Log", "read log of the specified "+kind, "", merged(one, optionsQuery("PodLogOptions")))
			op.produces = append(op.produces, "text/plain")
		default:
			view(sub, modelOf(s.Kind()), s.Kind(), s.Verbs()...)
		}
	}
}

// connect describes subresources that are streams or proxies.
func (d *describer) connect(name, sub string, s rest.Subresource, one []parameter) {
	methods := map[string][]string{"get": {http.MethodGet}, "create": {"POST"}, "update": {"PUT"}, "patch": {"PATCH"}, "delete": {"DELETE"}, "head": {"HEAD"}, "options": {"OPTIONS"}}
	what := d.kind + strings.ToUpper(sub[:1]) + sub[1:]
	params := merged(slices.DeleteFunc(slices.Clone(one), func(p parameter) bool { return p.name == pretty.name }), optionsQuery(s.Kind().Kind))
	for i := range params {
		if params[i].name == "name" {
			params[i].description = "name of the " + s.Kind().Kind
		}
	}
	verbs := s.Verbs()
	if sub == "proxy" {
		verbs = append(slices.Clone(verbs), "head", "options") // which no discovery names
	}
	for _, verb := range verbs {
		for _, method := range methods[verb] {
			word := "connect" + d.prefix + method[:1] + strings.ToLower(method[1:])
			add := func(path, suffix string, params []parameter) {
				d.paths.add(path, params, method, &operation{
					id: word + what + suffix, action: "connect", tag: d.tag, gvk: s.Kind(), produces: []string{"*/*"},
					description: fmt.Sprintf("connect %s requests to %s of %s", method, sub, d.listing.GVK.Kind),
					answers:     map[int]string{http.StatusOK: ""},
				})
			}
			add(name+"/"+sub, "", params)
			if sub == "proxy" {
				add(name+"/proxy/{path}", "WithPath", merged(params, []parameter{{name: "path", in: "path", kind: "string", required: true, description: "path to the resource"}}))
			}
		}
	}
}
