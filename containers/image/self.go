package image

import (
	"context"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/periplus/periplus/containers/image/blob"
	"github.com/periplus/periplus/linux/fsat"
)

// SelfName is the repository of the image that is the running binary.
const SelfName = "periplus.io/peri"

// selfFormat goes into the key: change it with the content of the file system.
const selfFormat = "1"

// certificateFiles are the places where distributions keep the trusted authorities.
var certificateFiles = []string{
	"/etc/ssl/certs/ca-certificates.crt", // Debian, Alpine, Gentoo
	"/etc/pki/tls/certs/ca-bundle.crt",   // Fedora
	"/etc/ssl/ca-bundle.pem",             // openSUSE
	"/etc/ssl/cert.pem",                  // Alpine
}

// EnsureSelf makes sure that the image periplus.io/peri:<version>, made of the
// binary exe (usually /proc/self/exe), is there and that none of another build
// is, and returns it. No archive is made: the layer's /peri is a hard link to
// the binary where that is possible.
func (s *Store) EnsureSelf(ctx context.Context, exe, version string) (*Image, error) {
	ref, err := ParseReference(SelfName + ":" + version)
	if err != nil {
		return nil, fmt.Errorf("self image: version %q cannot be a tag: %w", version, err)
	}
	certs := firstFile(certificateFiles)
	key, size, err := selfKey(exe, version, certs)
	if err != nil {
		return nil, fmt.Errorf("self image: %w", err)
	}
	img, err := s.ensureBuilt(ctx, built{ref: ref, program: "peri", exe: exe, certs: certs, key: key, size: size})
	if err != nil {
		return nil, fmt.Errorf("self image: %w", err)
	}
	return img, nil
}

// built is an image that is made of one program.
type built struct {
	ref     Reference
	program string // its name in the root directory
	exe     string // where it is
	certs   string // the trusted authorities; empty: none
	key     string // identifies the content
	size    int64
}

// ensureBuilt makes the image unless it is there, and removes those of other builds.
func (s *Store) ensureBuilt(ctx context.Context, b built) (*Image, error) {
	r, err := selfRecord(b)
	if err != nil {
		return nil, err
	}
	if img, held := s.haveSelf(r.ID); held {
		return img, s.dropOtherSelves(r.ID, b.program)
	}
	if err := s.layers.Build(ctx, r.chainID(), func(dir string) error { return fillSelf(dir, b) }); err != nil {
		return nil, err
	}
	img, err := s.add(r)
	if err != nil {
		return nil, err
	}
	return img, s.dropOtherSelves(r.ID, b.program)
}

// haveSelf looks for the image of this very build, with its layer.
func (s *Store) haveSelf(id string) (*Image, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.images[id]
	if e == nil || !e.held {
		return nil, false
	}
	return e.image, true
}

// dropOtherSelves removes the images of other builds of a program. Containers that
// run on them keep their layer.
func (s *Store) dropOtherSelves(id, program string) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	var others []*entry
	for _, e := range s.images {
		// Its names are the new one's by now.
		if e.record.Self != "" && e.record.ID != id && slices.Equal(e.record.Spec.Config.Entrypoint, []string{"/" + program}) {
			others = append(others, e)
		}
	}
	s.mu.Unlock()
	for _, e := range others {
		if err := s.drop(e); err != nil {
			return fmt.Errorf("self image: remove the one of another build: %w", err)
		}
	}
	return nil
}

// pullSelf answers a pull of the image that needs no pulling.
func (s *Store) pullSelf(ref Reference) (*Image, error) {
	img, err := s.Get(ref.String())
	if err == nil {
		return img, nil
	}
	have := "none"
	for _, i := range s.List() {
		for _, t := range i.RepoTags {
			if strings.HasPrefix(t, SelfName+":") {
				have = t
			}
		}
	}
	return nil, fmt.Errorf("failed to pull and unpack image %q: it is built into every node and never pulled; this node has %s: %w", ref, have, ErrNotFound)
}

// selfKey identifies the content of the self image.
func selfKey(exe, version, certs string) (key string, size int64, err error) {
	fi, err := os.Stat(exe)
	if err != nil {
		return "", 0, err
	}
	build, err := buildID(exe)
	if err != nil { // stripped of it: the file's identity has to do
		build = fmt.Sprint(fi.ModTime().UnixNano())
	}
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%s\n%s\n%d\n", selfFormat, version, build, fi.Size())
	if certs != "" {
		if ci, err := os.Stat(certs); err == nil {
			fmt.Fprintf(h, "%d %d\n", ci.Size(), ci.ModTime().UnixNano())
		}
	}
	return hex.EncodeToString(h.Sum(nil)), fi.Size(), nil
}

// buildID reads the note that the Go linker leaves: it stands for the whole content.
func buildID(exe string) (string, error) {
	f, err := elf.Open(exe)
	if err != nil {
		return "", err
	}
	defer f.Close()
	section := f.Section(".note.go.buildid")
	if section == nil {
		return "", errors.New("no build ID")
	}
	data, err := section.Data()
	if err != nil || len(data) <= 16 {
		return "", errors.New("no build ID")
	}
	return hex.EncodeToString(data), nil
}

// selfRecord makes the configuration and the manifest, which are the same for the same key.
func selfRecord(b built) (record, error) {
	key, size, ref := b.key, b.size, b.ref
	diff := digest.Digest("sha256:" + key)
	spec := v1.Image{
		Platform: v1.Platform{OS: "linux", Architecture: runtime.GOARCH},
		Config: v1.ImageConfig{
			Entrypoint: []string{"/" + b.program},
			Env:        []string{"PATH=/", "HOME=/tmp"},
			WorkingDir: "/",
			Labels:     map[string]string{"org.opencontainers.image.title": b.program, "org.opencontainers.image.version": ref.Tag},
		},
		RootFS: v1.RootFS{Type: "layers", DiffIDs: []digest.Digest{diff}},
	}
	config, err := json.Marshal(spec)
	if err != nil {
		return record{}, err
	}
	layer := v1.Descriptor{MediaType: "application/vnd.periplus.self.layer", Digest: diff, Size: size}
	configDesc := v1.Descriptor{MediaType: v1.MediaTypeImageConfig, Digest: digest.Digest(blob.Digest(config)), Size: int64(len(config))}
	m := v1.Manifest{MediaType: v1.MediaTypeImageManifest, Config: configDesc, Layers: []v1.Descriptor{layer}}
	m.SchemaVersion = 2
	manifest, err := json.Marshal(m)
	if err != nil {
		return record{}, err
	}
	manifestDigest := blob.Digest(manifest)
	return record{
		ID:       string(configDesc.Digest),
		Manifest: v1.Descriptor{MediaType: v1.MediaTypeImageManifest, Digest: digest.Digest(manifestDigest), Size: int64(len(manifest))},
		Config:   configDesc, Layers: []v1.Descriptor{layer}, Spec: spec,
		Tags: []string{ref.String()}, Digests: []string{ref.Name() + "@" + manifestDigest},
		Pinned: true, Self: key,
	}, nil
}

// fillSelf makes the file system of the image.
func fillSelf(dir string, b built) error {
	fi, err := os.Stat(b.exe)
	if err != nil {
		return err
	}
	const runnable = 0o555
	if err := fsat.Share(b.exe, filepath.Join(dir, b.program), fi.Mode().Perm()&runnable == runnable); err != nil {
		return err
	}
	for _, d := range []string{"tmp", "etc/ssl/certs", "proc", "sys", "dev", "run", "var/run"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			return err
		}
	}
	files := map[string]string{
		"etc/passwd":        "root:x:0:0:root:/:/" + b.program + "\nnobody:x:65534:65534:nobody:/:/" + b.program + "\n",
		"etc/group":         "root:x:0:\nnogroup:x:65534:\n",
		"etc/nsswitch.conf": "hosts: files dns\n",
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			return err
		}
	}
	if b.certs != "" {
		if err := fsat.Share(b.certs, filepath.Join(dir, "etc/ssl/certs/ca-certificates.crt"), false); err != nil {
			return err
		}
	}
	return openUp(dir, b.program)
}

// openUp makes everything readable for all, whatever the umask was, and tmp writable.
func openUp(dir, program string) error {
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			return os.Chmod(path, 0o755)
		case d.Name() == program: // perhaps the binary itself
			return nil
		}
		return os.Chmod(path, 0o644)
	})
	if err != nil {
		return err
	}
	return os.Chmod(filepath.Join(dir, "tmp"), 0o777|os.ModeSticky)
}

// firstFile is the first of some paths that is a file, or "".
func firstFile(paths []string) string {
	for _, p := range paths {
		if fi, err := os.Stat(p); err == nil && fi.Mode().IsRegular() {
			return p
		}
	}
	return ""
}
