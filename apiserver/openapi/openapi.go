package openapi

import (
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/munnerz/goautoneg"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/periplus/periplus/apiserver/rest"
)

// Media types. Clients ask for those with "@", which is no valid media type, so
// that answers carry the names with a dot.
const (
	mediaJSON    = "application/json"
	mediaV2      = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
	mediaV2Asked = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
	mediaV3      = "application/com.github.proto-openapi.spec.v3.v1.0+protobuf"
	mediaV3Asked = "application/com.github.proto-openapi.spec.v3@v1.0+protobuf"
)

// format is part of the ETags: raise it when documents of the same resources
// change otherwise than by a new version of k8s.io/api.
const format = "2"

// Handler serves /openapi/v2, /openapi/v3 and /openapi/v3/….
type Handler struct {
	// Schemas returns the schemas of kinds without a Go type (custom resources);
	// nil, or a nil result, means that nothing is known. Set it before the first request.
	Schemas func(schema.GroupVersionKind) *spec.Schema
	// SchemasV2 is Schemas for OpenAPI v2, which can say less; by default the same.
	SchemasV2 func(schema.GroupVersionKind) *spec.Schema
	// Tags names the state of the schema that Schemas returns.
	Tags func(schema.GroupVersionKind) string
	// Remotes are the group versions that other servers serve; nil: there are none.
	Remotes func() map[schema.GroupVersion]Remote

	listings func() []rest.Listing
	version  string
	modules  func() string
	base     func() string // what all documents depend on

	described describedKinds

	mu        sync.Mutex
	documents map[string]*document // by path below /openapi/
	whole     whole                // the document of OpenAPI v2
}

// A document is kept compressed. etag says what it was built of.
type document struct {
	etag     string
	json     []byte
	protobuf []byte // nil until it is asked for
}

// New returns a handler for the resources that listings returns.
func New(listings func() []rest.Listing, version string) *Handler {
	h := &Handler{
		listings: listings, version: version, modules: sync.OnceValue(modules), documents: map[string]*document{},
		whole: whole{version: version, custom: map[schema.GroupVersion]*customised{}},
	}
	h.base = sync.OnceValue(func() string { return hash(format, version, h.modules()) })
	return h
}

// modules names the versions of the libraries that the types come from.
func modules() string {
	var out strings.Builder
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if strings.HasPrefix(m.Path, "k8s.io/") {
				fmt.Fprintln(&out, m.Path, m.Version, m.Sum)
			}
		}
	}
	return out.String()
}

// ServeHTTP answers GET and HEAD.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "405 method not allowed", http.StatusMethodNotAllowed)
		return
	}
	remotes, listings := h.remotes()
	all := groups(listings)
	path := strings.TrimSuffix(strings.TrimPrefix(r.URL.Path, "/openapi/"), "/")
	if path == "v3" {
		h.index(w, r, all, remotes)
		return
	}
	for gv, other := range remotes {
		if path == "v3/apis/"+gv.String() && other.At != "" {
			other.V3.ServeHTTP(w, r)
			return
		}
	}
	if path == "v2" {
		h.everything(w, r, all, gather(r.Context(), remotes))
		return
	}
	name, ok := strings.CutPrefix(path, "v3/")
	if g := found(generals(all), name); ok && g != nil {
		h.hashed(w, r, path, name, h.generalTag(g), source{
			json: func() ([]byte, error) { return g.v3(h.version) }, protobuf: v3Protobuf, media: mediaV3, asked: mediaV3Asked,
		})
		return
	}
	i := slices.IndexFunc(all, func(g group) bool { return g.path() == name })
	if !ok || i < 0 {
		http.Error(w, "404 page not found", http.StatusNotFound)
		return
	}
	h.hashed(w, r, path, name, h.etag(&all[i]), source{
		json: func() ([]byte, error) { return v3(&all[i], h.version, h.Schemas) }, protobuf: v3Protobuf, media: mediaV3, asked: mediaV3Asked,
	})
}

// hashed serves a document of which a client may ask for the state that the index named.
func (h *Handler) hashed(w http.ResponseWriter, r *http.Request, path, name, etag string, s source) {
	if asked := r.URL.Query().Get("hash"); asked != "" {
		if asked != etag {
			http.Redirect(w, r, relativeURL(name, etag), http.StatusMovedPermanently)
			return
		}
		w.Header().Set("Cache-Control", "public, immutable")
		w.Header().Set("Expires", time.Now().AddDate(1, 0, 0).UTC().Format(http.TimeFormat))
	}
	h.serve(w, r, path, etag, s)
}

// generalTag names all that a general document is built of.
func (h *Handler) generalTag(g *general) string { return hash(format, h.version, h.modules(), g.name) }

// index lists the documents of OpenAPI v3 with their hashes.
func (h *Handler) index(w http.ResponseWriter, r *http.Request, all []group, remotes map[schema.GroupVersion]Remote) {
	type entry struct {
		ServerRelativeURL string `json:"serverRelativeURL"`
	}
	paths := map[string]entry{}
	for i := range all {
		name := all[i].path()
		paths[name] = entry{relativeURL(name, h.etag(&all[i]))}
	}
	list := generals(all)
	for i := range list {
		paths[list[i].name] = entry{relativeURL(list[i].name, h.generalTag(&list[i]))}
	}
	for gv, other := range remotes {
		if other.At != "" {
			paths["apis/"+gv.String()] = entry{other.At}
		}
	}
	body, err := json.Marshal(map[string]any{"paths": paths})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", mediaJSON)
	w.Header().Set("Etag", strconv.Quote(hash(string(body))))
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
}

func relativeURL(name, etag string) string {
	return (&url.URL{Path: "/openapi/v3/" + name, RawQuery: url.Values{"hash": {etag}}.Encode()}).String()
}

// etag names all that a group version's document is built of.
func (h *Handler) etag(g *group) string {
	parts := make([]string, 0, 2+2*len(g.list))
	parts = append(parts, h.base(), g.gv.String())
	for i := range g.list {
		l := &g.list[i]
		about := h.described.of(l)
		parts = append(parts, about.text)
		if about.custom && h.Tags != nil {
			parts = append(parts, h.Tags(l.GVK))
		}
	}
	return hash(parts...)
}

func hash(parts ...string) string {
	return fmt.Sprintf("%X", sha512.Sum512([]byte(strings.Join(parts, "\n"))))
}

// A source makes a document.
type source struct {
	json         func() ([]byte, error)
	protobuf     func(document []byte) ([]byte, error)
	packed       func(protobuf bool) ([]byte, error) // instead of these: compressed
	media, asked string                              // of the protobuf form
}

// serve answers with a document in the form that the client likes best.
func (h *Handler) serve(w http.ResponseWriter, r *http.Request, name, etag string, s source) {
	media := accepted(r.Header.Get("Accept"), s)
	w.Header().Set("Vary", "Accept, Accept-Encoding")
	if media == "" {
		http.Error(w, "406 not acceptable", http.StatusNotAcceptable)
		return
	}
	tag := strconv.Quote(etag)
	w.Header().Set("Etag", tag)
	if slices.Contains(strings.Split(strings.ReplaceAll(r.Header.Get("If-None-Match"), " ", ""), ","), tag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	body, err := h.get(name, etag, media != mediaJSON, s)
	if err != nil {
		http.Error(w, fmt.Sprintf("build /openapi/%s: %v", name, err), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", media)
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		_, _ = w.Write(body) // a client that has gone needs no answer
		return
	}
	plain, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_, _ = io.Copy(w, plain)
}

// accepted chooses a media type.
func accepted(accept string, s source) string {
	if accept == "" {
		return mediaJSON
	}
	for _, c := range goautoneg.ParseAccept(accept) {
		switch c.Type + "/" + c.SubType {
		case mediaJSON, "*/*", "application/*":
			return mediaJSON
		case s.media, s.asked:
			return s.media
		}
	}
	return ""
}

// get returns a document, compressed, and builds it if there is none for the etag.
func (h *Handler) get(name, etag string, protobuf bool, s source) ([]byte, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	d := h.documents[name]
	if d == nil || d.etag != etag {
		d = &document{etag: etag}
		h.documents[name] = d
	}
	if s.packed != nil {
		form := &d.json
		if protobuf {
			form = &d.protobuf
		}
		if *form != nil {
			return *form, nil
		}
		var err error
		*form, err = s.packed(protobuf)
		return *form, err
	}
	if d.json == nil {
		text, err := s.json()
		if err != nil {
			return nil, err
		}
		d.json = compress(text)
	}
	if !protobuf {
		return d.json, nil
	}
	if d.protobuf == nil {
		text, err := uncompress(d.json)
		if err != nil {
			return nil, err
		}
		binary, err := s.protobuf(text)
		if err != nil {
			return nil, err
		}
		d.protobuf = compress(binary)
	}
	return d.protobuf, nil
}

func uncompress(b []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

func compress(b []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(b) // a buffer takes everything
	_ = w.Close()
	return bytes.Clone(out.Bytes())
}
