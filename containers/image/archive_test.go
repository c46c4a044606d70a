package image_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/periplus/periplus/containers/image"
	"github.com/periplus/periplus/containers/image/admin"
)

// TestArchives imports what docker save writes, exports it, and imports that, over the admin socket.
func TestArchives(t *testing.T) {
	t.Parallel()
	img := build(t, "app", layer(t, "f=one"), layer(t, "g=two"))
	tag, err := name.NewTag("example.com/team/app:v1")
	if err != nil {
		t.Fatal(err)
	}
	var saved bytes.Buffer
	if err := tarball.Write(tag, img, &saved); err != nil {
		t.Fatal(err)
	}
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, _ = z.Write(saved.Bytes())
	z.Close()

	n := openNode(t, t.TempDir(), amd64(image.Options{}))
	client := serveAdmin(t, n)
	got, err := client.Import(t.Context(), &zipped, "")
	if err != nil {
		t.Fatal(err)
	}
	id, _ := img.ConfigName()
	if len(got) != 1 || got[0].ID != id.String() || !slices.Equal(got[0].RepoTags, []string{"example.com/team/app:v1"}) {
		t.Fatalf("imported %+v", got)
	}
	var exported bytes.Buffer
	if err := client.Export(t.Context(), &exported, "example.com/team/app:v1"); err != nil {
		t.Fatal(err)
	}
	// another tool can read it
	path := filepath.Join(t.TempDir(), "x.tar")
	if err := os.WriteFile(path, exported.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if back, err := tarball.ImageFromPath(path, &tag); err != nil {
		t.Error(err)
	} else if backID, _ := back.ConfigName(); backID != id {
		t.Errorf("read back as %s", backID)
	}
	// so can another node
	m := openNode(t, t.TempDir(), amd64(image.Options{}))
	images, err := m.Import(t.Context(), bytes.NewReader(exported.Bytes()), image.ImportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(images) != 1 || images[0].ID != id.String() || !slices.Equal(images[0].RepoTags, []string{"example.com/team/app:v1"}) {
		t.Errorf("imported %+v", images)
	}
	if s := m.read(t, images[0], "g"); s != "two" {
		t.Errorf("g is %q", s)
	}

	// what goes wrong says so
	if err := client.Export(t.Context(), io.Discard, "none"); err == nil || !strings.Contains(err.Error(), `image "none": not found`) {
		t.Errorf("export: %v", err)
	}
	for content, want := range map[string]string{
		"this is no archive":           "not an image archive",
		"":                             "neither index.json",
		string(exported.Bytes()[:522]): "unexpected EOF",
	} {
		if _, err := client.Import(t.Context(), strings.NewReader(content), ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("import of %d bytes: %v, want %q", len(content), err, want)
		}
	}
	if _, err := client.Import(t.Context(), strings.NewReader(""), "Bad Name"); err == nil || !strings.Contains(err.Error(), "invalid reference format") {
		t.Errorf("name: %v", err)
	}
	if _, err := admin.NewClient("/nonexistent.sock").Import(t.Context(), strings.NewReader(""), ""); err == nil || !strings.Contains(err.Error(), "is peri running?") {
		t.Errorf("no server: %v", err)
	}
}

func serveAdmin(t *testing.T, n *node) *admin.Client {
	t.Helper()
	socket := filepath.Join(t.TempDir(), admin.SocketName)
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: admin.Handler(n.Store)}
	done := make(chan struct{})
	go func() { defer close(done); _ = srv.Serve(l) }()
	t.Cleanup(func() { srv.Close(); <-done })
	return admin.NewClient(socket)
}

// TestSelf makes the image of a binary, replaces it with another build's, and never pulls it.
func TestSelf(t *testing.T) {
	t.Parallel()
	n := openNode(t, t.TempDir(), amd64(image.Options{}))
	exe := filepath.Join(n.dir, "peri")
	if err := os.WriteFile(exe, []byte("first build"), 0o755); err != nil {
		t.Fatal(err)
	}
	img, err := n.EnsureSelf(t.Context(), exe, "v0.1.0")
	if err != nil {
		t.Fatal(err)
	}
	if !img.Pinned || img.RepoTags[0] != "periplus.io/peri:v0.1.0" || !slices.Equal(img.Config.Config.Entrypoint, []string{"/peri"}) {
		t.Errorf("%+v", img)
	}
	if s := n.read(t, img, "peri"); s != "first build" {
		t.Errorf("/peri is %q", s)
	}
	if s := n.read(t, img, "etc/passwd"); !strings.Contains(s, "nobody:x:65534") {
		t.Errorf("/etc/passwd is %q", s)
	}
	fi, err := os.Stat(exe)
	if err != nil || fi.Sys().(*syscall.Stat_t).Nlink != 2 {
		t.Errorf("not a hard link: %v %v", fi.Sys(), err)
	}
	pulled, err := n.PullImage(t.Context(), &runtimeapi.PullImageRequest{Image: &runtimeapi.ImageSpec{Image: "periplus.io/peri:v0.1.0"}})
	if err != nil || pulled.ImageRef != img.ID {
		t.Errorf("%v %v", pulled, err)
	}
	if err := n.Remove(t.Context(), img.ID); !errors.Is(err, image.ErrPinned) {
		t.Errorf("remove: %v", err)
	}
	if err := n.Export(t.Context(), io.Discard, img.ID); err == nil {
		t.Error("exported")
	}
	// the same binary after a restart: the same image
	n.close()
	n = openNode(t, n.dir, amd64(image.Options{}))
	again, err := n.EnsureSelf(t.Context(), exe, "v0.1.0")
	if err != nil || again.ID != img.ID {
		t.Errorf("%v %v", again, err)
	}
	// another build of the same version replaces it
	if err := os.Remove(exe); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(exe, []byte("a second build"), 0o700); err != nil { // others cannot run it: copied
		t.Fatal(err)
	}
	second, err := n.EnsureSelf(t.Context(), exe, "v0.1.0")
	if err != nil || second.ID == img.ID || len(n.List()) != 1 {
		t.Fatalf("%+v %v %d", second, err, len(n.List()))
	}
	if s := n.read(t, second, "peri"); s != "a second build" {
		t.Errorf("/peri is %q", s)
	}
	if _, err := n.EnsureSelf(t.Context(), exe, "not/a tag"); err == nil {
		t.Error("a version that is no tag was accepted")
	}
}

// TestLeftovers opens a store that a killed process has left.
func TestLeftovers(t *testing.T) {
	t.Parallel()
	n := openNode(t, t.TempDir(), amd64(image.Options{}))
	var saved bytes.Buffer
	tag, err := name.NewTag("example.com/app:v1")
	if err == nil {
		err = tarball.Write(tag, build(t, "", layer(t, "f=1")), &saved)
	}
	if err != nil {
		t.Fatal(err)
	}
	images, err := n.Import(t.Context(), &saved, image.ImportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := image.Open(filepath.Join(n.dir, "images"), image.Options{Layers: n.layers}); !errors.Is(err, image.ErrLocked) {
		t.Errorf("a second process: %v", err)
	}
	n.close()
	for path, content := range map[string]string{
		"images/blobs/ingest/123":                  "half",
		"images/blobs/sha256/" + hex64:             "no image needs it",
		"images/records/tmp-1":                     "{",
		"images/records/" + hex64 + ".json":        `{"id":`,
		"snapshots/tmp/1/staged.json":              "{",
		"snapshots/layers/" + hex64[:32] + "/fs/x": "no record",
	} {
		path = filepath.Join(n.dir, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	// the layer is lost as well: it is unpacked again from its blob
	if err := os.RemoveAll(filepath.Join(n.dir, "snapshots/layers", images[0].ChainID[7:39])); err != nil {
		t.Fatal(err)
	}
	n = openNode(t, n.dir, amd64(image.Options{}))
	if len(n.List()) != 1 {
		t.Errorf("%d images", len(n.List()))
	}
	if s := n.read(t, n.List()[0], "f"); s != "1" {
		t.Errorf("f is %q", s)
	}
	n.layers.Close()
	for dir, want := range map[string]int{"images/blobs/ingest": 0, "images/blobs/sha256": 3, "images/records": 2, "snapshots/tmp": 0, "snapshots/layers": 1} {
		if left, err := os.ReadDir(filepath.Join(n.dir, dir)); err != nil || len(left) != want {
			t.Errorf("%s has %v, want %d", dir, left, want)
		}
	}
}

// TestCRI checks the calls that the kubelet makes.
func TestCRI(t *testing.T) {
	t.Parallel()
	host := serve(t, nil)
	push(t, host+"/app:v1", build(t, "1000:7", layer(t, "f=1")))
	push(t, host+"/named:v1", build(t, "app", layer(t, "f=2")))
	n := openNode(t, t.TempDir(), amd64(image.Options{}))
	ctx := context.Background()
	spec := func(s string) *runtimeapi.ImageSpec { return &runtimeapi.ImageSpec{Image: s} }
	if r, err := n.ImageStatus(ctx, &runtimeapi.ImageStatusRequest{Image: spec(host + "/app:v1")}); err != nil || r.Image != nil {
		t.Errorf("%v %v", r, err)
	}
	p, err := n.PullImage(ctx, &runtimeapi.PullImageRequest{Image: spec(host + "/app:v1")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.PullImage(ctx, &runtimeapi.PullImageRequest{Image: spec(host + "/named:v1")}); err != nil {
		t.Fatal(err)
	}
	r, err := n.ImageStatus(ctx, &runtimeapi.ImageStatusRequest{Image: spec(p.ImageRef), Verbose: true})
	if err != nil || r.Image.Id != p.ImageRef || r.Image.Uid.GetValue() != 1000 || r.Image.Username != "" || r.Image.Size == 0 || !strings.Contains(r.Info["info"], "/bin/app") {
		t.Errorf("%v %v", r, err)
	}
	r, err = n.ImageStatus(ctx, &runtimeapi.ImageStatusRequest{Image: spec(host + "/named:v1")})
	if err != nil || r.Image.Uid != nil || r.Image.Username != "app" {
		t.Errorf("%v %v", r, err)
	}
	l, err := n.ListImages(ctx, &runtimeapi.ListImagesRequest{Filter: &runtimeapi.ImageFilter{Image: spec(host + "/app:v1")}})
	if err != nil || len(l.Images) != 1 {
		t.Errorf("%v %v", l, err)
	}
	fs, err := n.ImageFsInfo(ctx, nil)
	if err != nil || fs.ImageFilesystems[0].UsedBytes.Value == 0 || fs.ImageFilesystems[0].FsId.Mountpoint != filepath.Join(n.dir, "snapshots") {
		t.Errorf("%v %v", fs, err)
	}
	for range 2 {
		if _, err := n.RemoveImage(ctx, &runtimeapi.RemoveImageRequest{Image: spec(host + "/app:v1")}); err != nil {
			t.Error(err)
		}
	}
	if l, _ := n.ListImages(ctx, &runtimeapi.ListImagesRequest{}); len(l.Images) != 1 {
		t.Errorf("%v", l)
	}
}

// BenchmarkSelf is what the self image costs at a start.
func BenchmarkSelf(b *testing.B) {
	n := openNode(b, b.TempDir(), image.Options{})
	exe, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := n.EnsureSelf(b.Context(), exe, "v1"); err != nil {
			b.Fatal(err)
		}
	}
}
