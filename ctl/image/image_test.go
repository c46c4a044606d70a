package image_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"google.golang.org/grpc"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	images "github.com/periplus/periplus/containers/image"
	"github.com/periplus/periplus/containers/image/admin"
	"github.com/periplus/periplus/containers/snapshot/overlayfs"
	"github.com/periplus/periplus/ctl/image"
)

// service offers a store as the CRI does; the other calls are not implemented.
type service struct {
	runtimeapi.UnimplementedImageServiceServer
	*images.Store
}

func (s service) ListImages(ctx context.Context, r *runtimeapi.ListImagesRequest) (*runtimeapi.ListImagesResponse, error) {
	return s.Store.ListImages(ctx, r)
}
func (s service) ImageStatus(ctx context.Context, r *runtimeapi.ImageStatusRequest) (*runtimeapi.ImageStatusResponse, error) {
	return s.Store.ImageStatus(ctx, r)
}
func (s service) PullImage(ctx context.Context, r *runtimeapi.PullImageRequest) (*runtimeapi.PullImageResponse, error) {
	return s.Store.PullImage(ctx, r)
}
func (s service) RemoveImage(ctx context.Context, r *runtimeapi.RemoveImageRequest) (*runtimeapi.RemoveImageResponse, error) {
	return s.Store.RemoveImage(ctx, r)
}
func (s service) ImageFsInfo(ctx context.Context, r *runtimeapi.ImageFsInfoRequest) (*runtimeapi.ImageFsInfoResponse, error) {
	return s.Store.ImageFsInfo(ctx, r)
}

// serve runs a store behind both sockets and returns the endpoint.
func serve(t *testing.T) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: layers are unpacked with their owners")
	}
	dir := t.TempDir()
	log := slog.New(slog.DiscardHandler)
	layers, err := overlayfs.Open(filepath.Join(dir, "snapshots"), log)
	if err != nil {
		t.Fatal(err)
	}
	store, err := images.Open(filepath.Join(dir, "images"), images.Options{Layers: layers, Log: log, Platform: "linux/amd64"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close(); layers.Close() })
	listen := func(name string) net.Listener {
		l, err := net.Listen("unix", filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	g := grpc.NewServer()
	runtimeapi.RegisterImageServiceServer(g, service{Store: store})
	cri, archives := listen("cri.sock"), listen(admin.SocketName)
	go func() { _ = g.Serve(cri) }()
	h := &http.Server{Handler: admin.Handler(store)}
	go func() { _ = h.Serve(archives) }()
	t.Cleanup(func() { g.Stop(); h.Close() })
	return "unix://" + filepath.Join(dir, "cri.sock")
}

// run runs the verb and returns what it prints.
func run(t *testing.T, endpoint string, args ...string) (string, error) {
	t.Helper()
	cmd := image.New()
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(io.Discard)
	cmd.SetIn(strings.NewReader("secret\n"))
	cmd.SetArgs(append(args, "--runtime-endpoint", endpoint))
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

func TestImage(t *testing.T) {
	t.Parallel()
	endpoint := serve(t)
	img, err := random.Image(1000, 2)
	if err != nil {
		t.Fatal(err)
	}
	tag, err := name.NewTag("example.com/app:v1")
	if err != nil {
		t.Fatal(err)
	}
	archive := filepath.Join(t.TempDir(), "app.tar")
	if err := tarball.WriteToFile(archive, tag, img); err != nil {
		t.Fatal(err)
	}
	id, _ := img.ConfigName()
	short := id.Hex[:13]
	copied := filepath.Join(t.TempDir(), "copy.tar")
	for _, step := range []struct {
		args string
		want []string
		err  string
	}{
		{"ls", []string{"IMAGE", "SIZE"}, ""},
		{"import " + archive, []string{"example.com/app:v1 sha256:" + id.Hex}, ""},
		{"ls", []string{"example.com/app   v1", short}, ""},
		{"ls -q", []string{"sha256:" + id.Hex}, ""},
		{"ls -o json example.com/app:v1", []string{`"id": "sha256:` + id.Hex}, ""},
		{"ls --digests --no-trunc " + short, []string{"DIGEST", id.Hex}, ""},
		{"ls -o xml", nil, `--output "xml" is not supported`},
		{"inspect example.com/app:v1", []string{`"status"`, `"imageSpec"`, "chainID"}, ""},
		{"inspect none", nil, `image "none": not found`},
		{"export example.com/app:v1 -o " + copied, nil, ""},
		{"export example.com/app:v1", nil, "--output is required"},
		{"rm None", nil, "repository name (library/None) must be lowercase"},
		{"rm " + short, []string{"removed example.com/app:v1", "removed sha256:" + id.Hex}, ""},
		{"rm " + short, nil, "not found"},
		{"import --name x.io/y " + copied, []string{"example.com/app:v1"}, ""},
		{"import " + filepath.Join(t.TempDir(), "none"), nil, "no such file"},
		{"pull NGINX", nil, `invalid image name "NGINX": invalid reference format: repository name (library/NGINX) must be lowercase`},
		{"pull 127.0.0.1:1/app", nil, `failed to pull and unpack image "127.0.0.1:1/app:latest": failed to resolve reference "127.0.0.1:1/app:latest": failed to do request`},
		{"pull -u me 127.0.0.1:1/app", nil, "--username needs --password-stdin"},
		{"pull -u me --password-stdin 127.0.0.1:1/app", nil, "connection refused"},
	} {
		out, err := run(t, endpoint, strings.Fields(step.args)...)
		if (err == nil) != (step.err == "") || err != nil && !strings.Contains(err.Error(), step.err) {
			t.Errorf("%s: error %v, want %q", step.args, err, step.err)
		}
		if err != nil && strings.Contains(err.Error(), "rpc error") {
			t.Errorf("%s: error %v speaks of gRPC", step.args, err)
		}
		for _, w := range step.want {
			if !strings.Contains(out, w) {
				t.Errorf("%s: printed\n%s\nwant %q", step.args, out, w)
			}
		}
	}
}

func TestNoRuntime(t *testing.T) {
	t.Parallel()
	if _, err := run(t, "unix:///nonexistent/cri.sock", "ls"); err == nil || !strings.Contains(err.Error(), "cannot reach the container runtime at /nonexistent/cri.sock") {
		t.Errorf("got %v", err)
	}
	if _, err := run(t, "tcp:1", "ls"); err == nil || !strings.Contains(err.Error(), "--runtime-endpoint") {
		t.Errorf("got %v", err)
	}
}
