package image_test

import (
	"archive/tar"
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/periplus/periplus/containers/image"
	"github.com/periplus/periplus/containers/snapshot"
	"github.com/periplus/periplus/containers/snapshot/overlayfs"
)

// node is a store with its snapshotter, in directories that survive reopen.
type node struct {
	*image.Store
	dir    string
	layers *overlayfs.Snapshotter
}

var quiet = slog.New(slog.DiscardHandler)

func needRoot(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: owners, devices and overlayfs mounts")
	}
}

func openNode(t testing.TB, dir string, o image.Options) *node {
	t.Helper()
	needRoot(t)
	layers, err := overlayfs.Open(filepath.Join(dir, "snapshots"), quiet)
	if err != nil {
		t.Fatal(err)
	}
	o.Layers, o.Log = layers, quiet
	s, err := image.Open(filepath.Join(dir, "images"), o)
	if err != nil {
		t.Fatal(err)
	}
	n := &node{s, dir, layers}
	t.Cleanup(func() { n.close() })
	return n
}

func (n *node) close() {
	n.Store.Close()
	n.layers.Close()
}

// read mounts an image's file system for a container and reads a file of it.
func (n *node) read(t *testing.T, img *image.Image, path string) string {
	t.Helper()
	ctx := t.Context()
	chain, release, err := n.Unpack(ctx, img)
	if err != nil {
		t.Fatal(err)
	}
	err = n.layers.Prepare(ctx, "reader", chain, snapshot.PrepareOptions{})
	release()
	if err != nil {
		t.Fatal(err)
	}
	target := t.TempDir()
	if err := n.layers.Mount(ctx, "reader", target); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(target, path))
	if uerr := n.layers.Unmount(ctx, target); uerr != nil {
		t.Fatal(uerr)
	}
	if rerr := n.layers.Remove(ctx, "reader"); rerr != nil {
		t.Fatal(rerr)
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// layer makes a compressed layer of files; a directory's name ends in "/".
func layer(t testing.TB, files ...string) v1.Layer {
	t.Helper()
	var buf bytes.Buffer
	tw := tar.NewWriter(&buf)
	for _, f := range files {
		name, content, _ := strings.Cut(f, "=")
		hdr := &tar.Header{Name: name, Mode: 0o644, Size: int64(len(content)), Typeflag: tar.TypeReg}
		if strings.HasSuffix(name, "/") {
			hdr.Typeflag, hdr.Mode = tar.TypeDir, 0o755
		}
		if err := tw.WriteHeader(hdr); err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(tw, content)
	}
	tw.Close()
	l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(buf.Bytes())), nil })
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// build makes an image of layers.
func build(t testing.TB, user string, layers ...v1.Layer) v1.Image {
	t.Helper()
	img, err := mutate.AppendLayers(empty.Image, layers...)
	if err != nil {
		t.Fatal(err)
	}
	cf, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	cf = cf.DeepCopy()
	cf.OS, cf.Architecture = "linux", "amd64"
	cf.Config.User, cf.Config.Cmd = user, []string{"/bin/app"}
	if img, err = mutate.ConfigFile(img, cf); err != nil {
		t.Fatal(err)
	}
	return img
}

// serve runs a registry on the loopback and returns its host:port.
func serve(t testing.TB, wrap func(http.Handler) http.Handler) (host string) {
	t.Helper()
	h := registry.New(registry.Logger(slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)))
	if wrap != nil {
		h = wrap(h)
	}
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return strings.TrimPrefix(srv.URL, "http://")
}

func push(t testing.TB, ref string, img v1.Image) {
	t.Helper()
	r, err := name.ParseReference(ref)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(r, img, remote.WithContext(context.Background())); err != nil {
		t.Fatal(err)
	}
}

func amd64(o image.Options) image.Options {
	o.Platform = "linux/amd64"
	return o
}

func TestPull(t *testing.T) {
	t.Parallel()
	host := serve(t, nil)
	img := build(t, "1000:1000", layer(t, "etc/", "etc/a=one", "etc/gone=x"), layer(t, "etc/.wh.gone=", "etc/b=two"))
	push(t, host+"/team/app:v1", img)
	n := openNode(t, t.TempDir(), amd64(image.Options{}))
	got, err := n.Pull(t.Context(), host+"/team/app:v1", image.PullOptions{})
	if err != nil {
		t.Fatal(err)
	}
	id, _ := img.ConfigName()
	d, _ := img.Digest()
	if got.ID != id.String() || len(got.RepoDigests) != 1 || got.RepoDigests[0] != host+"/team/app@"+d.String() {
		t.Errorf("got %+v", got)
	}
	if s := n.read(t, got, "etc/b"); s != "two" {
		t.Errorf("etc/b is %q", s)
	}
	// the same again, by digest: nothing is fetched twice, a name is added
	again, err := n.Pull(t.Context(), host+"/team/app@"+d.String(), image.PullOptions{})
	if err != nil || again.ID != got.ID || len(again.RepoTags) != 1 {
		t.Fatalf("%+v %v", again, err)
	}
	// reopen: everything is there
	n.close()
	n = openNode(t, n.dir, amd64(image.Options{}))
	for _, ref := range []string{got.ID, got.ID[7:19], host + "/team/app:v1", got.RepoDigests[0]} {
		if i, err := n.Get(ref); err != nil || i.ID != got.ID {
			t.Errorf("Get(%q): %v %v", ref, i, err)
		}
	}
	if err := n.Remove(t.Context(), host+"/team/app:v1"); err != nil {
		t.Fatal(err)
	}
	n.layers.Close()
	for _, dir := range []string{"images/blobs/sha256", "images/records", "snapshots/layers", "snapshots/tmp"} {
		if left, _ := os.ReadDir(filepath.Join(n.dir, dir)); len(left) != 0 {
			t.Errorf("%s is not empty: %v", dir, left)
		}
	}
}
