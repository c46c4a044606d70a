package image

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/periplus/periplus/containers/image/blob"
)

// Media types of Docker's own, older forms of the OCI formats.
const (
	dockerIndex    = "application/vnd.docker.distribution.manifest.list.v2+json"
	dockerManifest = "application/vnd.docker.distribution.manifest.v2+json"
	dockerConfig   = "application/vnd.docker.container.image.v1+json"
	dockerLayer    = "application/vnd.docker.image.rootfs.diff.tar.gzip"
)

// maxConfig bounds an image configuration, and an index.
const maxConfig = 8 << 20

// document is what tells an index from a manifest.
type document struct {
	SchemaVersion int             `json:"schemaVersion"`
	MediaType     string          `json:"mediaType"`
	Manifests     json.RawMessage `json:"manifests"`
	Layers        json.RawMessage `json:"layers"`
	Config        json.RawMessage `json:"config"`
	FSLayers      json.RawMessage `json:"fsLayers"`
}

// isIndex reports whether data is an index; the content decides, since headers lie.
func isIndex(data []byte) (bool, error) {
	var d document
	if err := json.Unmarshal(data, &d); err != nil {
		return false, fmt.Errorf("the manifest is not JSON: %w", err)
	}
	switch {
	case d.SchemaVersion == 1 || d.FSLayers != nil:
		return false, errors.New("schema 1 image manifests are no longer supported")
	case d.Manifests != nil && (d.Layers != nil || d.Config != nil):
		return false, errors.New("the manifest is both an index and an image")
	case d.Manifests != nil:
		return true, nil
	case d.Config == nil:
		return false, fmt.Errorf("the manifest of type %q is not an image's: it has no configuration", d.MediaType)
	}
	return false, nil
}

// choose picks the entry of an index for a platform.
func choose(data []byte, platform string) (v1.Descriptor, error) {
	var index v1.Index
	if err := json.Unmarshal(data, &index); err != nil {
		return v1.Descriptor{}, fmt.Errorf("read index: %w", err)
	}
	want, err := parsePlatform(platform)
	if err != nil {
		return v1.Descriptor{}, err
	}
	best, bestRank := v1.Descriptor{}, 0
	for _, d := range index.Manifests {
		if rank := platformRank(want, d.Platform); rank > bestRank {
			best, bestRank = d, rank
		}
	}
	if bestRank == 0 {
		// A module runs on any machine.
		if i := slices.IndexFunc(index.Manifests, func(d v1.Descriptor) bool { return d.Platform != nil && d.Platform.Architecture == "wasm" }); i >= 0 {
			best, bestRank = index.Manifests[i], 1
		}
	}
	if bestRank == 0 {
		return best, fmt.Errorf("no match for platform in manifest: %s: %w (the image has %s)", platform, ErrNotFound, platformsOf(index))
	}
	return best, blob.CheckDigest(string(best.Digest))
}

func platformsOf(index v1.Index) []string {
	var out []string
	for _, d := range index.Manifests {
		if p := d.Platform; p != nil && p.OS != "unknown" {
			name := p.OS + "/" + p.Architecture
			if p.Variant != "" {
				name += "/" + p.Variant
			}
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// readManifest reads and checks a manifest.
func readManifest(data []byte) (v1.Manifest, error) {
	var m v1.Manifest
	if err := json.Unmarshal(data, &m); err != nil {
		return m, fmt.Errorf("read manifest: %w", err)
	}
	for _, d := range append([]v1.Descriptor{m.Config}, m.Layers...) {
		if err := blob.CheckDigest(string(d.Digest)); err != nil {
			return m, fmt.Errorf("read manifest: %w", err)
		}
		if d.Size < 0 {
			return m, fmt.Errorf("read manifest: %s has the size %d", d.Digest, d.Size)
		}
	}
	if m.Config.Size > maxConfig {
		return m, fmt.Errorf("the image's configuration has %d bytes, more than %d", m.Config.Size, maxConfig)
	}
	return m, nil
}

// readConfig reads an image configuration for a manifest.
func readConfig(data []byte, m v1.Manifest) (v1.Image, error) {
	var c v1.Image
	if err := json.Unmarshal(data, &c); err != nil {
		return c, fmt.Errorf("read image configuration: %w", err)
	}
	if len(c.RootFS.DiffIDs) != len(m.Layers) {
		return c, fmt.Errorf("mismatched image rootfs and manifest layers: %d and %d", len(c.RootFS.DiffIDs), len(m.Layers))
	}
	for _, d := range c.RootFS.DiffIDs {
		if err := blob.CheckDigest(string(d)); err != nil {
			return c, fmt.Errorf("read image configuration: %w", err)
		}
	}
	c.History = nil
	return c, nil
}

// chainIDs names each layer together with those below it (OCI image-spec, "Layer ChainID").
func chainIDs(diffIDs []digest.Digest) []string {
	out := make([]string, len(diffIDs))
	for i, d := range diffIDs {
		if i == 0 {
			out[i] = string(d)
			continue
		}
		sum := sha256.Sum256([]byte(out[i-1] + " " + string(d)))
		out[i] = "sha256:" + hex.EncodeToString(sum[:])
	}
	return out
}
