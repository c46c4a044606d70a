package image

import (
	"archive/tar"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/periplus/periplus/containers/image/blob"
)

// Files of archives that are not blobs.
const (
	ociIndexFile       = "index.json"
	dockerManifestFile = "manifest.json"
)

// annotationName is where containerd and docker write an image's full name in an index.
const annotationName = "io.containerd.image.name"

// ErrNotImageArchive is returned when what is imported is not an archive of images.
var ErrNotImageArchive = errors.New("not an image archive")

// ImportOptions are the wishes of one import.
type ImportOptions struct {
	// Name is given to an image that the archive has no name for.
	Name string
}

// Import reads an archive as written by docker save or Export, or an OCI layout,
// as tar, tar+gzip or tar+zstd, once and from front to back, and returns its
// images for the store's platform.
func (s *Store) Import(ctx context.Context, r io.Reader, o ImportOptions) ([]*Image, error) {
	if o.Name != "" {
		if _, err := ParseReference(o.Name); err != nil {
			return nil, fmt.Errorf("import as %q: %w", o.Name, err)
		}
	}
	a := &archive{store: s, options: o, files: map[string]file{}, links: map[string]string{}, small: map[string][]byte{}}
	defer a.close()
	if err := a.read(ctx, r); err != nil {
		return nil, fmt.Errorf("import: %w", err)
	}
	images, err := a.install(ctx)
	if err != nil {
		return nil, fmt.Errorf("import: %w", err)
	}
	return images, nil
}

// archive is an archive being imported. Its files become blobs first; what they
// are is known at the end only.
type archive struct {
	store   *Store
	options ImportOptions
	files   map[string]file
	links   map[string]string
	small   map[string][]byte
	release []func()
}

// file is a member of the archive that has become a blob.
type file struct {
	desc v1.Descriptor
	gzip bool
}

// close lets go of the blobs that no image needs.
func (a *archive) close() {
	for _, f := range a.release {
		f()
	}
}

// read takes in the whole stream.
func (a *archive) read(ctx context.Context, r io.Reader) error {
	z, err := decompress(r)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotImageArchive, err)
	}
	defer z.Close()
	tr := tar.NewReader(z)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		hdr, err := tr.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil && len(a.files)+len(a.small) == 0 {
			return fmt.Errorf("%w: %w", ErrNotImageArchive, err)
		}
		if err != nil {
			return err
		}
		if err := a.member(hdr, tr); err != nil {
			return fmt.Errorf("%s: %w", hdr.Name, err)
		}
	}
}

// member takes in one file.
func (a *archive) member(hdr *tar.Header, r io.Reader) error {
	name := path.Clean(hdr.Name)
	switch hdr.Typeflag {
	case tar.TypeSymlink:
		a.links[name] = path.Join(path.Dir(name), hdr.Linkname)
		return nil
	case tar.TypeLink:
		a.links[name] = path.Clean(hdr.Linkname)
		return nil
	case tar.TypeReg:
	default:
		return nil
	}
	switch name {
	case ociIndexFile, dockerManifestFile:
		if hdr.Size > maxConfig {
			return fmt.Errorf("is larger than %d bytes", maxConfig)
		}
		data, err := io.ReadAll(r)
		a.small[name] = data
		return err
	case "oci-layout", "repositories":
		return nil
	}
	return a.blob(name, r)
}

// blob stores a member under its digest, which for members of an OCI layout must be their name.
func (a *archive) blob(name string, r io.Reader) error {
	s := a.store
	w, err := s.blobs.Create()
	if err != nil {
		return err
	}
	defer w.Abort(nil)
	head := &headWriter{w: w}
	if _, err := io.Copy(head, r); err != nil {
		return err
	}
	d := w.Digest()
	if digits, ok := strings.CutPrefix(name, "blobs/sha256/"); ok && d != "sha256:"+digits {
		return fmt.Errorf("%w: got %s", blob.ErrCorrupt, d)
	}
	a.release = append(a.release, s.hold(d))
	a.files[name] = file{
		desc: v1.Descriptor{Digest: digest.Digest(d), Size: w.Size()},
		gzip: strings.HasPrefix(string(head.head), "\x1f\x8b"),
	}
	if s.blobs.Has(d) {
		return nil
	}
	return w.Commit(d, w.Size())
}

// headWriter remembers the first bytes.
type headWriter struct {
	w    io.Writer
	head []byte
}

func (h *headWriter) Write(p []byte) (int, error) {
	if n := 4 - len(h.head); n > 0 {
		h.head = append(h.head, p[:min(n, len(p))]...)
	}
	return h.w.Write(p)
}

// find looks a member up, through links.
func (a *archive) find(name string) (file, error) {
	name = path.Clean(name)
	for range 8 {
		if f, ok := a.files[name]; ok {
			return f, nil
		}
		target, ok := a.links[name]
		if !ok {
			break
		}
		name = target
	}
	return file{}, fmt.Errorf("%w: it lacks the file %q", ErrNotImageArchive, name)
}

// install makes images of what has been read.
func (a *archive) install(ctx context.Context) ([]*Image, error) {
	if data, ok := a.small[ociIndexFile]; ok {
		return a.installLayout(ctx, data)
	}
	if data, ok := a.small[dockerManifestFile]; ok {
		return a.installDocker(ctx, data)
	}
	return nil, fmt.Errorf("%w: it has neither index.json (OCI layout) nor manifest.json (docker save)", ErrNotImageArchive)
}

// installLayout handles an OCI image layout.
func (a *archive) installLayout(ctx context.Context, data []byte) ([]*Image, error) {
	var index v1.Index
	if err := json.Unmarshal(data, &index); err != nil {
		return nil, fmt.Errorf("%w: index.json: %w", ErrNotImageArchive, err)
	}
	if len(index.Manifests) == 0 {
		return nil, fmt.Errorf("%w: index.json has no images", ErrNotImageArchive)
	}
	want, err := parsePlatform(a.store.options.Platform)
	if err != nil {
		return nil, err
	}
	var out []*Image
	for _, d := range index.Manifests {
		if platformRank(want, d.Platform) == 0 {
			continue // one entry a platform
		}
		img, err := a.installManifest(ctx, d)
		if err != nil {
			return nil, err
		}
		out = append(out, img)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no match for platform in archive: %s: %w (it has %s)", a.store.options.Platform, ErrNotFound, platformsOf(index))
	}
	return out, nil
}

// installManifest installs one entry of index.json.
func (a *archive) installManifest(ctx context.Context, d v1.Descriptor) (*Image, error) {
	s := a.store
	var n names
	if ref, err := a.name(d.Annotations); err != nil {
		return nil, err
	} else if ref != nil {
		n = names{[]string{ref.String()}, []string{ref.Name() + "@" + string(d.Digest)}}
	}
	for range 3 {
		data, err := s.blobs.Read(string(d.Digest), maxConfig)
		if err != nil {
			return nil, err
		}
		index, err := isIndex(data)
		if err != nil {
			return nil, err
		}
		if index {
			if d, err = choose(data, s.options.Platform); err != nil {
				return nil, err
			}
			continue
		}
		m, err := readManifest(data)
		if err != nil {
			return nil, err
		}
		config, err := s.blobs.Read(string(m.Config.Digest), maxConfig)
		if err != nil {
			return nil, err
		}
		desc := v1.Descriptor{MediaType: cmp.Or(m.MediaType, d.MediaType), Digest: d.Digest, Size: int64(len(data))}
		return s.install(ctx, desc, m, config, n, noSource)
	}
	return nil, errors.New("the indexes are nested too deeply")
}

// name is what an index calls an image, nil if it does not.
func (a *archive) name(annotations map[string]string) (*Reference, error) {
	name := cmp.Or(annotations[annotationName], annotations[v1.AnnotationRefName])
	if name != "" && annotations[annotationName] == "" && badTag(name) == "" {
		if a.options.Name == "" { // only a tag: of what?
			return nil, nil
		}
		base, err := ParseReference(a.options.Name)
		if err != nil {
			return nil, err
		}
		name = base.String()
	}
	if name = cmp.Or(name, a.options.Name); name == "" {
		return nil, nil
	}
	ref, err := ParseReference(name)
	if err != nil {
		return nil, fmt.Errorf("the archive calls an image %q: %w", name, err)
	}
	if ref.Digest != "" {
		return nil, nil
	}
	return &ref, nil
}

// dockerEntry is an element of manifest.json.
type dockerEntry struct {
	Config   string
	RepoTags []string
	Layers   []string
}

// installDocker handles what docker save wrote before it wrote OCI layouts.
func (a *archive) installDocker(ctx context.Context, data []byte) ([]*Image, error) {
	var entries []dockerEntry
	if err := json.Unmarshal(data, &entries); err != nil {
		return nil, fmt.Errorf("%w: manifest.json: %w", ErrNotImageArchive, err)
	}
	var out []*Image
	for _, e := range entries {
		img, err := a.installEntry(ctx, e)
		if err != nil {
			return nil, err
		}
		out = append(out, img)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%w: manifest.json has no images", ErrNotImageArchive)
	}
	return out, nil
}

func (a *archive) installEntry(ctx context.Context, e dockerEntry) (*Image, error) {
	s := a.store
	config, err := a.find(e.Config)
	if err != nil {
		return nil, err
	}
	config.desc.MediaType = dockerConfig
	m := v1.Manifest{MediaType: dockerManifest, Config: config.desc, Layers: []v1.Descriptor{}}
	m.SchemaVersion = 2
	for _, l := range e.Layers {
		f, err := a.find(l)
		if err != nil {
			return nil, err
		}
		if f.desc.MediaType = strings.TrimSuffix(dockerLayer, ".gzip"); f.gzip {
			f.desc.MediaType = dockerLayer
		}
		m.Layers = append(m.Layers, f.desc)
	}
	var n names
	for _, t := range e.RepoTags {
		ref, err := ParseReference(t)
		if err != nil {
			return nil, fmt.Errorf("the archive calls an image %q: %w", t, err)
		}
		n.tags = append(n.tags, ref.String())
	}
	if len(n.tags) == 0 && a.options.Name != "" {
		ref, err := ParseReference(a.options.Name)
		if err != nil {
			return nil, err
		}
		n.tags = []string{ref.String()}
	}
	data, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	a.release = append(a.release, s.hold(blob.Digest(data)))
	d, err := s.blobs.Put(data)
	if err != nil {
		return nil, err
	}
	content, err := s.blobs.Read(string(config.desc.Digest), maxConfig)
	if err != nil {
		return nil, err
	}
	desc := v1.Descriptor{MediaType: dockerManifest, Digest: digest.Digest(d), Size: int64(len(data))}
	return s.install(ctx, desc, m, content, n, noSource)
}
