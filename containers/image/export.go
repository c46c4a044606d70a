package image

import (
	"archive/tar"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"path"
	"strings"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// Export writes the images as a tar archive that is an OCI layout and can be
// read by docker load as well. A name exports that name, an ID all names.
// Nothing has been written if an image is not there.
func (s *Store) Export(ctx context.Context, w io.Writer, refs ...string) error {
	index := v1.Index{MediaType: v1.MediaTypeImageIndex, Manifests: []v1.Descriptor{}}
	index.SchemaVersion = 2
	var docker []dockerEntry
	var blobs []string
	sizes := map[string]int64{}
	for _, ref := range refs {
		s.mu.Lock()
		e, err := s.findLocked(ref)
		s.mu.Unlock()
		if err != nil {
			return err
		}
		r := e.record
		if r.Self != "" {
			return fmt.Errorf("image %q: it is made of this node's own binary and every node has its own: it cannot be exported", ref)
		}
		tags := r.Tags
		if parsed, err := ParseReference(ref); err == nil && parsed.Tag != "" && !strings.HasPrefix(r.ID, "sha256:"+ref) && ref != r.ID {
			tags = []string{parsed.String()}
		}
		index.Manifests = append(index.Manifests, describe(r, tags)...)
		docker = append(docker, r.docker(tags))
		for digest, size := range r.blobs() {
			if _, ok := sizes[digest]; !ok {
				blobs, sizes[digest] = append(blobs, digest), size
			}
		}
	}
	release := s.hold(blobs...)
	defer release()
	tw := tar.NewWriter(w)
	small := []struct {
		name  string
		value any
	}{
		{"oci-layout", v1.ImageLayout{Version: v1.ImageLayoutVersion}},
		{ociIndexFile, index},
		{dockerManifestFile, docker},
	}
	for _, f := range small {
		data, err := json.Marshal(f.value)
		if err != nil {
			return err
		}
		if err := writeFile(tw, f.name, int64(len(data)), strings.NewReader(string(data))); err != nil {
			return err
		}
	}
	for _, d := range blobs {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := s.exportBlob(tw, d, sizes[d]); err != nil {
			return fmt.Errorf("export: %w", err)
		}
	}
	return tw.Close()
}

// describe is an image's entries in index.json, one a name.
func describe(r record, tags []string) []v1.Descriptor {
	d := r.Manifest
	d.Platform = &v1.Platform{OS: r.Spec.OS, Architecture: r.Spec.Architecture, Variant: r.Spec.Variant}
	if len(tags) == 0 {
		return []v1.Descriptor{d}
	}
	var out []v1.Descriptor
	for _, t := range tags {
		named := d
		named.Annotations = maps.Clone(d.Annotations)
		if named.Annotations == nil {
			named.Annotations = map[string]string{}
		}
		named.Annotations[annotationName] = t
		named.Annotations[v1.AnnotationRefName] = t[strings.LastIndexByte(t, ':')+1:]
		out = append(out, named)
	}
	return out
}

// docker is an image's entry in manifest.json.
func (r *record) docker(tags []string) dockerEntry {
	e := dockerEntry{Config: blobPath(string(r.Config.Digest)), RepoTags: tags, Layers: []string{}}
	for _, l := range r.Layers {
		e.Layers = append(e.Layers, blobPath(string(l.Digest)))
	}
	return e
}

func blobPath(digest string) string { return path.Join("blobs", strings.Replace(digest, ":", "/", 1)) }

func (s *Store) exportBlob(tw *tar.Writer, digest string, size int64) error {
	r, err := s.blobs.Reader(digest)
	if err != nil {
		return err
	}
	defer r.Close()
	return writeFile(tw, blobPath(digest), size, r)
}

func writeFile(tw *tar.Writer, name string, size int64, r io.Reader) error {
	if err := tw.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: size, Typeflag: tar.TypeReg}); err != nil {
		return err
	}
	_, err := io.Copy(tw, r)
	return err
}
