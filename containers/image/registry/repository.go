package registry

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/google/go-containerregistry/pkg/v1/types"
)

// maxManifest bounds a manifest, as most registries do.
const maxManifest = 8 << 20

// Repository is one repository, at all the places that may have it.
type Repository struct {
	host, path string
	endpoints  []*endpoint              // in the order in which they are asked; the registry itself is the last
	last       atomic.Pointer[endpoint] // that worked
}

// Manifest is a manifest or an index as it was served.
type Manifest struct {
	MediaType string
	Digest    string // computed, not believed
	Data      []byte
}

// accept lists what we understand.
var accept = strings.Join([]string{
	string(types.OCIImageIndex), string(types.DockerManifestList),
	string(types.OCIManifestSchema1), string(types.DockerManifestSchema2), "*/*",
}, ", ")

// Manifest fetches a manifest by tag or digest. With a digest the content is compared with it.
func (r *Repository) Manifest(ctx context.Context, tagOrDigest string) (Manifest, error) {
	var m Manifest
	err := r.each(ctx, func(e *endpoint) error {
		resp, err := e.get(ctx, http.MethodGet, "manifests/"+tagOrDigest, http.Header{"Accept": {accept}})
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		data, err := io.ReadAll(io.LimitReader(resp.Body, maxManifest+1))
		if err != nil {
			return fmt.Errorf("read manifest from %s: %w", e.host, err)
		}
		if len(data) > maxManifest {
			return fmt.Errorf("manifest from %s is larger than %d bytes", e.host, maxManifest)
		}
		sum := sha256.Sum256(data)
		m = Manifest{MediaType: resp.Header.Get("Content-Type"), Digest: "sha256:" + hex.EncodeToString(sum[:]), Data: data}
		if strings.Contains(tagOrDigest, ":") && m.Digest != tagOrDigest {
			return fmt.Errorf("manifest from %s has digest %s, want %s", e.host, m.Digest, tagOrDigest)
		}
		return nil
	})
	return m, err
}

// Blob opens a blob of some size at an offset. The caller checks the content.
func (r *Repository) Blob(ctx context.Context, digest string, offset, size int64) (io.ReadCloser, error) {
	var body io.ReadCloser
	err := r.each(ctx, func(e *endpoint) error {
		h := http.Header{}
		if offset > 0 {
			h.Set("Range", fmt.Sprintf("bytes=%d-%d", offset, size-1))
		}
		resp, err := e.get(ctx, http.MethodGet, "blobs/"+digest, h)
		if err != nil {
			return err
		}
		ranged := resp.StatusCode == http.StatusPartialContent
		want := size
		if ranged {
			want -= offset
		}
		if got := resp.ContentLength; got >= 0 && got != want { // cheaper to notice now than by the digest
			resp.Body.Close()
			return fmt.Errorf("blob from %s has %d bytes, want %d", e.host, got, want)
		}
		if !ranged && offset > 0 { // it knows no ranges
			if _, err := io.CopyN(io.Discard, resp.Body, offset); err != nil {
				resp.Body.Close()
				return fmt.Errorf("read blob from %s: %w", e.host, err)
			}
		}
		body = resp.Body
		return nil
	})
	return body, err
}

// Suspect makes the repository ask the endpoint that it used last after all
// others from now on: its content was wrong or broke off.
func (r *Repository) Suspect() {
	if e := r.last.Load(); e != nil {
		e.suspect.Store(true)
	}
}

// order lists the endpoints as they are to be asked: the one that worked last,
// then as configured, then those under suspicion.
func (r *Repository) order() []*endpoint {
	out := slices.Clone(r.endpoints)
	last := r.last.Load()
	rank := func(e *endpoint) int {
		switch {
		case e.suspect.Load():
			return 2
		case e == last:
			return 0
		}
		return 1
	}
	slices.SortStableFunc(out, func(a, b *endpoint) int { return rank(a) - rank(b) })
	return out
}

// each tries one endpoint after the other. The error is the registry's own; what
// mirrors said is added.
func (r *Repository) each(ctx context.Context, try func(*endpoint) error) error {
	var own error
	var mirrors []string
	for _, e := range r.order() {
		err := try(e)
		if err == nil {
			r.last.Store(e)
			return nil
		}
		if ctx.Err() != nil {
			return err
		}
		if e.origin {
			own = err
		} else {
			mirrors = append(mirrors, e.host+": "+err.Error())
		}
	}
	if len(mirrors) > 0 {
		return fmt.Errorf("%w (mirrors failed as well: %s)", own, strings.Join(mirrors, "; "))
	}
	return own
}
