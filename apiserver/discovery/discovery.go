package discovery

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/periplus/periplus/apiserver/rest"
)

// allVerbs in the order of upstream's documents.
var allVerbs = []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}

// Handler answers discovery requests. Resources returns what is served.
type Handler struct {
	Resources func() []rest.Listing
	Codecs    *rest.Codecs
	// Table orders groups and names those of other servers; nil, or a nil result: there are none.
	Table func() *Table
}

// resources lists one group version's resources with their subresources.
func resources(list []rest.Listing) []metav1.APIResource {
	slices.SortFunc(list, func(a, b rest.Listing) int { return cmp.Compare(a.GVR.Resource, b.GVR.Resource) })
	var out []metav1.APIResource
	for _, l := range list {
		r := l.Resource
		verbs := allVerbs
		switch {
		case r.Create != nil:
			verbs = []string{"create"}
		case r.Verbs != nil:
			verbs = r.Verbs
		}
		main := metav1.APIResource{
			Name: l.GVR.Resource, SingularName: r.Singular, Namespaced: r.Namespaced, Kind: l.GVK.Kind,
			Verbs: verbs, ShortNames: r.ShortNames, Categories: r.Categories, StorageVersionHash: storageHash(r.KeptAs()),
		}
		if r.Create != nil || r.Live != nil {
			main.StorageVersionHash = ""
		}
		out = append(out, main)
		var subs []metav1.APIResource
		if r.Status != nil {
			subs = append(subs, metav1.APIResource{Name: l.GVR.Resource + "/status", Namespaced: r.Namespaced, Kind: l.GVK.Kind, Verbs: []string{"get", "patch", "update"}})
		}
		if r.Scale != nil {
			subs = append(subs, metav1.APIResource{Name: l.GVR.Resource + "/scale", Namespaced: r.Namespaced, Group: "autoscaling", Version: "v1", Kind: "Scale", Verbs: []string{"get", "patch", "update"}})
		}
		for name := range r.Views {
			verbs := []string{"get", "patch", "update"}
			if name == "finalize" {
				verbs = []string{"update"}
			}
			subs = append(subs, metav1.APIResource{Name: l.GVR.Resource + "/" + name, Namespaced: r.Namespaced, Kind: l.GVK.Kind, Verbs: verbs})
		}
		for name, s := range l.Subresources {
			k := s.Kind()
			sub := metav1.APIResource{Name: l.GVR.Resource + "/" + name, Namespaced: r.Namespaced, Kind: k.Kind, Verbs: s.Verbs()}
			if k.GroupVersion() != l.GVK.GroupVersion() {
				sub.Group, sub.Version = k.Group, k.Version
			}
			subs = append(subs, sub)
		}
		slices.SortFunc(subs, func(a, b metav1.APIResource) int { return cmp.Compare(a.Name, b.Name) })
		out = append(out, subs...)
	}
	return out
}

// storageHash names the stored version, as upstream: the first 8 bytes of a SHA-256.
func storageHash(gvk schema.GroupVersionKind) string {
	sum := sha256.Sum256([]byte(gvk.Group + "/" + gvk.Version + "/" + gvk.Kind))
	return base64.StdEncoding.EncodeToString(sum[:8])
}

func apiGroup(name string, g map[string]*groupVersion, t *Table) metav1.APIGroup {
	out := metav1.APIGroup{Name: name}
	for _, v := range t.versions(name, g) {
		out.Versions = append(out.Versions, metav1.GroupVersionForDiscovery{GroupVersion: name + "/" + v, Version: v})
	}
	out.PreferredVersion = out.Versions[0]
	return out
}

// ServeHTTP answers GET of /api, /apis and the documents below them.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	names, byGroup, table := h.groups()
	aggregated := wantsAggregated(r.Header.Get("Accept"))
	switch {
	case parts[0] == "api" && len(parts) == 1:
		if aggregated {
			h.writeAggregated(w, r, []string{""}, byGroup, table)
			return
		}
		h.Codecs.WriteObject(w, r, http.StatusOK, &metav1.APIVersions{
			TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"},
			ServerAddressByClientCIDRs: []metav1.ServerAddressByClientCIDR{{ClientCIDR: "0.0.0.0/0", ServerAddress: r.Host}},
		})
	case parts[0] == "api" && len(parts) == 2 && parts[1] == "v1":
		h.writeResources(w, r, "v1", byGroup[""]["v1"])
	case parts[0] == "apis" && len(parts) == 1:
		names = slices.DeleteFunc(names, func(g string) bool { return g == "" })
		if aggregated {
			h.writeAggregated(w, r, names, byGroup, table)
			return
		}
		list := &metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: []metav1.APIGroup{}}
		for _, g := range names {
			list.Groups = append(list.Groups, apiGroup(g, byGroup[g], table))
		}
		h.Codecs.WriteObject(w, r, http.StatusOK, list)
	case parts[0] == "apis" && len(parts) == 2 && byGroup[parts[1]] != nil:
		g := apiGroup(parts[1], byGroup[parts[1]], table)
		g.TypeMeta = metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}
		h.Codecs.WriteObject(w, r, http.StatusOK, &g)
	case parts[0] == "apis" && len(parts) == 3 && byGroup[parts[1]][parts[2]] != nil:
		h.writeResources(w, r, parts[1]+"/"+parts[2], byGroup[parts[1]][parts[2]])
	default:
		http.Error(w, "404 page not found", http.StatusNotFound)
	}
}

func (h *Handler) writeResources(w http.ResponseWriter, r *http.Request, gv string, v *groupVersion) {
	h.Codecs.WriteObject(w, r, http.StatusOK, &metav1.APIResourceList{
		TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: gv, APIResources: v.resources(),
	})
}

// aggregatedMedia is the media type of the aggregated document.
const aggregatedMedia = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// wantsAggregated reports whether the client prefers the aggregated document.
func wantsAggregated(accept string) bool {
	first, _, _ := strings.Cut(accept, ",")
	for clause := range strings.SplitSeq(accept, ",") {
		if strings.Contains(clause, "as=APIGroupDiscoveryList") && strings.Contains(clause, "v=v2;") && strings.Contains(clause, "application/json") {
			return true
		}
	}
	return strings.Contains(first, "as=APIGroupDiscoveryList") && strings.HasSuffix(strings.TrimSpace(first), "v=v2")
}

func (h *Handler) writeAggregated(w http.ResponseWriter, r *http.Request, names []string, byGroup groupMap, table *Table) {
	doc := &apidiscoveryv2.APIGroupDiscoveryList{
		TypeMeta: metav1.TypeMeta{Kind: "APIGroupDiscoveryList", APIVersion: apidiscoveryv2.SchemeGroupVersion.String()},
		Items:    []apidiscoveryv2.APIGroupDiscovery{},
	}
	for _, name := range names {
		g := apidiscoveryv2.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: name}}
		for _, v := range table.versions(name, byGroup[name]) {
			d := apidiscoveryv2.APIVersionDiscovery{Version: v, Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent}
			if r := byGroup[name][v].remote; r != nil && r.Stale {
				d.Freshness = apidiscoveryv2.DiscoveryFreshnessStale
			}
			d.Resources = aggregate(schema.GroupVersion{Group: name, Version: v}, byGroup[name][v].resources())
			g.Versions = append(g.Versions, d)
		}
		doc.Items = append(doc.Items, g)
	}
	body, err := json.Marshal(doc)
	if err != nil {
		h.Codecs.WriteError(w, r, err)
		return
	}
	sum := sha256.Sum256(body)
	etag := `"` + strings.ToUpper(hex.EncodeToString(sum[:])) + `"`
	w.Header().Set("ETag", etag)
	w.Header().Set("Vary", "Accept")
	w.Header().Set("Cache-Control", "public")
	if r.Header.Get("If-None-Match") == etag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.Header().Set("Content-Type", aggregatedMedia)
	_, _ = w.Write(body)
}

// aggregate turns the flat list of resources and subresources into a tree.
func aggregate(gv schema.GroupVersion, list []metav1.APIResource) []apidiscoveryv2.APIResourceDiscovery {
	var out []apidiscoveryv2.APIResourceDiscovery
	for _, r := range list {
		kind := &metav1.GroupVersionKind{Group: gv.Group, Version: gv.Version, Kind: r.Kind}
		if r.Version != "" {
			kind.Group, kind.Version = r.Group, r.Version
		}
		scope := apidiscoveryv2.ScopeCluster
		if r.Namespaced {
			scope = apidiscoveryv2.ScopeNamespace
		}
		if parent, sub, ok := strings.Cut(r.Name, "/"); ok {
			i := slices.IndexFunc(out, func(d apidiscoveryv2.APIResourceDiscovery) bool { return d.Resource == parent })
			if i < 0 { // another server's list may come in any order
				i = len(out)
				out = append(out, apidiscoveryv2.APIResourceDiscovery{Resource: parent, Scope: scope, ResponseKind: &metav1.GroupVersionKind{}})
			}
			out[i].Subresources = append(out[i].Subresources, apidiscoveryv2.APISubresourceDiscovery{Subresource: sub, ResponseKind: kind, Verbs: r.Verbs})
			continue
		}
		out = append(out, apidiscoveryv2.APIResourceDiscovery{
			Resource: r.Name, ResponseKind: kind, Scope: scope, SingularResource: r.SingularName,
			Verbs: r.Verbs, ShortNames: r.ShortNames, Categories: r.Categories,
		})
	}
	return out
}
