package image_test

import (
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/random"

	"github.com/periplus/periplus/containers/image"
)

// pullIn and pullRef, in its environment, make this test program a node that pulls.
const (
	pullIn  = "PERIPLUS_TEST_PULL_IN"
	pullRef = "PERIPLUS_TEST_PULL_REF"
)

// TestKilled ends a node with SIGKILL while it pulls: one layer is there and unpacked,
// half of another has come. Nothing half is left for the next one, and it can pull.
func TestKilled(t *testing.T) {
	t.Parallel()
	if dir := os.Getenv(pullIn); dir != "" {
		n := openNode(t, dir, amd64(image.Options{}))
		_, err := n.Pull(t.Context(), os.Getenv(pullRef), image.PullOptions{})
		t.Fatalf("the pull has ended: %v", err)
	}
	needRoot(t)
	big, err := random.Image(1<<20, 1)
	if err != nil {
		t.Fatal(err)
	}
	second := first(t, big)
	digest, err := second.Digest()
	if err != nil {
		t.Fatal(err)
	}
	half, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	host := serve(t, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, digest.String()) {
				w = &halting{ResponseWriter: w, left: 512 << 10, reached: func() {
					once.Do(func() { close(half) })
					<-release
				}}
			}
			h.ServeHTTP(w, r)
		})
	})
	push(t, host+"/app:v1", build(t, "", layer(t, "f=one"), second))
	dir := t.TempDir()
	node := exec.Command(os.Args[0], "-test.run=^TestKilled$", "-test.timeout=5m")
	node.Env = append(os.Environ(), pullIn+"="+dir, pullRef+"="+host+"/app:v1")
	if err := node.Start(); err != nil {
		t.Fatal(err)
	}
	<-half
	if err := node.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = node.Wait() // killed
	close(release)

	n := openNode(t, dir, amd64(image.Options{}))
	if _, err := n.Get(host + "/app:v1"); !errors.Is(err, image.ErrNotFound) {
		t.Errorf("half an image is there: %v", err)
	}
	for _, left := range []string{"images/blobs/ingest", "images/blobs/sha256", "images/records"} {
		if entries, err := os.ReadDir(filepath.Join(dir, left)); err != nil || len(entries) > 0 {
			t.Errorf("%s has %v, %v", left, entries, err)
		}
	}
	img, err := n.Pull(t.Context(), host+"/app:v1", image.PullOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if s := n.read(t, img, "f"); s != "one" {
		t.Errorf("f is %q", s)
	}
}

// halting stops in the middle of an answer until reached returns, once.
type halting struct {
	http.ResponseWriter
	left    int
	reached func()
}

func (h *halting) Write(p []byte) (int, error) {
	if h.left > 0 && len(p) > h.left {
		n, err := h.ResponseWriter.Write(p[:h.left])
		if err != nil {
			return n, err
		}
		h.ResponseWriter.(http.Flusher).Flush()
		h.left = 0
		h.reached()
		m, err := h.ResponseWriter.Write(p[n:])
		return n + m, err
	}
	h.left -= len(p)
	return h.ResponseWriter.Write(p)
}
