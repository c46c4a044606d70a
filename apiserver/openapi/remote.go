package openapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/aggregator"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/periplus/periplus/apiserver/rest"
)

// A Remote is where the documents of a group version are that another server serves.
type Remote struct {
	// At is the place of the document of OpenAPI v3 on that server, with its hash; "": there is none.
	At string
	// V3 serves that document.
	V3 http.Handler
	// V2 returns the server's whole document of OpenAPI v2 and a tag of its state.
	V2 func(ctx context.Context) (etag string, text []byte)
}

// remotes returns what other servers serve, and listings without it.
func (h *Handler) remotes() (map[schema.GroupVersion]Remote, []rest.Listing) {
	list := h.listings()
	if h.Remotes == nil {
		return nil, list
	}
	remotes := h.Remotes()
	if len(remotes) == 0 {
		return nil, list
	}
	return remotes, slices.DeleteFunc(list, func(l rest.Listing) bool {
		_, ok := remotes[l.GVR.GroupVersion()]
		return ok
	})
}

// foreign is what other servers add to the document of OpenAPI v2.
type foreign struct {
	etags []string
	texts map[schema.GroupVersion][]byte
}

func gather(ctx context.Context, remotes map[schema.GroupVersion]Remote) foreign {
	out := foreign{texts: map[schema.GroupVersion][]byte{}}
	for gv, r := range remotes {
		etag, text := r.V2(ctx)
		if len(text) > 0 {
			out.texts[gv] = text
			out.etags = append(out.etags, gv.String()+" "+etag)
		}
	}
	slices.Sort(out.etags)
	return out
}

// merge adds the paths of other servers' group versions, and what they refer to, to a document.
func (f foreign) merge(document []byte) ([]byte, error) {
	if len(f.texts) == 0 {
		return document, nil
	}
	whole := &spec.Swagger{}
	if err := json.Unmarshal(document, whole); err != nil {
		return nil, err
	}
	for gv, text := range f.texts {
		other := &spec.Swagger{}
		if json.Unmarshal(text, other) != nil || other.Paths == nil {
			continue // that server's mistake is not to hide what others serve
		}
		// Nothing may come in from outside of the group version.
		part := aggregator.FilterSpecByPathsWithoutSideEffects(other, []string{"/apis/" + gv.String() + "/"})
		for path := range part.Paths.Paths {
			if !strings.HasPrefix(path, "/apis/"+gv.String()+"/") {
				delete(part.Paths.Paths, path)
			}
		}
		if err := aggregator.MergeSpecsIgnorePathConflictRenamingDefinitionsAndParameters(whole, part); err != nil {
			return nil, fmt.Errorf("merge the document of %s: %w", gv, err)
		}
	}
	return json.Marshal(whole)
}
