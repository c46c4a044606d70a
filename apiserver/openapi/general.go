package openapi

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiversion "k8s.io/apimachinery/pkg/version"

	"github.com/periplus/periplus/apiserver/rest"
)

// A general document describes what is served besides resources: lists of groups
// and versions, the keys of service accounts, logs, the server's version.
type general struct {
	name   string   // of the document: "apis/apps"
	models []string // that its operations refer to
	add    func(paths)
}

// generals returns the documents that every server has, and one for each group of
// built-in kinds.
func generals(all []group) []general {
	json := []string{"application/json"}
	versions, groupList, apiGroup := metav1.APIVersions{}.OpenAPIModelName(), metav1.APIGroupList{}.OpenAPIModelName(), metav1.APIGroup{}.OpenAPIModelName()
	info := apiversion.Info{}.OpenAPIModelName()
	get := func(path string, op operation) func(paths) {
		return func(p paths) { p.add(path, nil, http.MethodGet, &op) }
	}
	answer := func(model string) map[int]string { return map[int]string{http.StatusOK: model} }
	out := []general{
		{name: ".well-known/openid-configuration", add: get("/.well-known/openid-configuration/", operation{
			id: "getServiceAccountIssuerOpenIDConfiguration", tag: "WellKnown", answers: answer(""), produces: json,
			description: "get service account issuer OpenID configuration, also known as the 'OIDC discovery doc'",
		})},
		{name: "openid/v1/jwks", add: get("/openid/v1/jwks/", operation{
			id: "getServiceAccountIssuerOpenIDKeyset", tag: "openid", answers: answer(""), produces: []string{"application/jwk-set+json"},
			description: "get service account issuer OpenID JSON Web Key Set (contains public token verification keys)",
		})},
		{name: "version", models: []string{info}, add: get("/version/", operation{
			id: "getCodeVersion", description: "get the version information for this server", tag: "version", answers: answer(info), produces: json,
		})},
		{name: "logs", add: func(p paths) {
			p.add("/logs/", nil, http.MethodGet, &operation{id: "logFileListHandler", tag: "logs"})
			path := parameter{name: "logpath", in: "path", kind: "string", required: true, description: "path to the log"}
			p.add("/logs/{logpath}", []parameter{path}, http.MethodGet, &operation{id: "logFileHandler", tag: "logs"})
		}},
		{name: "api", models: []string{versions}, add: get("/api/", operation{
			id: "getCoreAPIVersions", description: "get available API versions", tag: "core", answers: answer(versions), produces: produced(false),
		})},
		{name: "apis", models: []string{groupList}, add: get("/apis/", operation{
			id: "getAPIVersions", description: "get available API versions", tag: "apis", answers: answer(groupList), produces: produced(false),
		})},
	}
	for i := range all {
		name := all[i].gv.Group
		if name == "" || i > 0 && all[i-1].gv.Group == name || !slices.ContainsFunc(all[i].list, builtIn) {
			continue
		}
		id := strings.TrimSuffix(idPrefix(schema.GroupVersion{Group: name, Version: "v1"}), "V1")
		out = append(out, general{name: "apis/" + name, models: []string{apiGroup}, add: get("/apis/"+name+"/", operation{
			id: "get" + id + "APIGroup", description: "get information of a group", tag: strings.ToLower(id[:1]) + id[1:],
			answers: answer(apiGroup), produces: produced(false),
		})})
	}
	return out
}

// builtIn reports whether a kind has a Go type.
func builtIn(l rest.Listing) bool {
	newObject, _ := constructors(&l)
	return newObject != nil && modelName(typeOf(newObject())) != ""
}

// define adds the definitions that a general document refers to.
func (g *general) define(l *library) {
	for _, name := range g.models {
		l.copy(name)
		if kind := name[strings.LastIndex(name, ".")+1:]; kind != "Info" {
			l.kind(name, schema.GroupVersionKind{Version: "v1", Kind: kind})
		}
	}
}

// v3 builds the document.
func (g *general) v3(version string) ([]byte, error) {
	l, err := newLibrary()
	if err != nil {
		return nil, err
	}
	g.define(l)
	p := paths{}
	g.add(p)
	formV3(l.out)
	return json.Marshal(documentV3(p, l, version))
}

// found returns the general document of a name, or nil.
func found(list []general, name string) *general {
	if i := slices.IndexFunc(list, func(g general) bool { return g.name == name }); i >= 0 {
		return &list[i]
	}
	return nil
}
