package images_test

import (
	"archive/tar"
	"io"
	"net"
	"net/http"
	"os/exec"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"

	"github.com/periplus/periplus/test/images"
	"github.com/periplus/periplus/test/images/registry"
)

// names lists the entries of an image's root file system by type.
func names(t *testing.T, img v1.Image) map[string]byte {
	t.Helper()
	r := mutate.Extract(img)
	defer r.Close()
	out := map[string]byte{}
	for tr := tar.NewReader(r); ; {
		h, err := tr.Next()
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		out[h.Name] = h.Typeflag
	}
}

func TestBusybox(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("busybox"); err != nil {
		t.Skip("needs the package busybox-static")
	}
	img, err := images.Busybox()
	if err != nil {
		t.Fatal(err)
	}
	again, err := images.Busybox()
	if err != nil {
		t.Fatal(err)
	}
	a, _ := img.Digest()
	b, _ := again.Digest()
	if a != b || a == (v1.Hash{}) {
		t.Errorf("built twice: digests %v and %v", a, b)
	}
	files := names(t, img)
	if files["bin/busybox"] != tar.TypeReg || files["bin/sh"] != tar.TypeSymlink || files["tmp"] != tar.TypeDir {
		t.Errorf("busybox %c, sh %c, tmp %c", files["bin/busybox"], files["bin/sh"], files["tmp"])
	}
}

func TestNginx(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("apt-get"); err != nil {
		t.Skip("needs apt-get")
	}
	img, err := images.Nginx(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	files := names(t, img)
	for _, f := range []string{"usr/sbin/nginx", "etc/nginx/nginx.conf", "usr/share/nginx/html/index.html", "etc/passwd"} {
		if files[f] != tar.TypeReg {
			t.Errorf("%s is not a file of the image", f)
		}
	}
	if files["lib"] != tar.TypeSymlink {
		t.Error("/lib is not a link into /usr")
	}
}

func TestRegistry(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // loopback
	if err != nil {
		t.Fatal(err)
	}
	r := registry.Serve(l)
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	img, err := images.Files([]string{"/x"}, images.File{Path: "x", Mode: 0o755, Data: []byte("x")})
	if err != nil {
		t.Fatal(err)
	}
	full, err := r.Push(t.Context(), "some/thing:v1", img)
	if err != nil {
		t.Fatal(err)
	}
	if want := l.Addr().String() + "/some/thing:v1"; full != want {
		t.Errorf("name %q, want %q", full, want)
	}
	q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+r.Address()+"/v2/some/thing/manifests/v1", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK || r.Pulls() != 1 {
		t.Errorf("status %d, pulls %d", resp.StatusCode, r.Pulls())
	}
}
