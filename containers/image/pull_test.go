package image_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/periplus/periplus/containers/image"
	"github.com/periplus/periplus/linux/porttest"
)

// TestPullErrors checks what a user reads in the events of a pod, and its code.
func TestPullErrors(t *testing.T) {
	t.Parallel()
	host, dead := serve(t, nil), porttest.Closed(t)
	denied := serve(t, func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("WWW-Authenticate", `Basic realm="here"`)
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"errors":[{"code":"UNAUTHORIZED","message":"authentication required"}]}`)
		})
	})
	broken := serve(t, func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/v2/" {
				w.WriteHeader(http.StatusInternalServerError)
			}
		})
	})
	n := openNode(t, t.TempDir(), amd64(image.Options{}))
	for _, tc := range []struct {
		ref  string
		code codes.Code
		want []string
	}{
		{host + "/no/such:v1", codes.NotFound, []string{
			`failed to pull and unpack image "` + host + `/no/such:v1": failed to resolve reference "` + host + `/no/such:v1": ` + host + `/no/such:v1: not found`}},
		{dead + "/app", codes.Unknown, []string{`failed to resolve reference "` + dead + `/app:latest": failed to do request: `, "connect: connection refused"}},
		{denied + "/app", codes.PermissionDenied, []string{"pull access denied, repository does not exist or may require authorization", "authentication required"}},
		{broken + "/app", codes.Unknown, []string{"unexpected status from GET request to http://" + broken + "/v2/app/manifests/latest: 500 Internal Server Error"}},
		{"Host/App", codes.InvalidArgument, []string{`failed to parse image reference "Host/App": invalid reference format: repository name (App) must be lowercase`}},
		{image.SelfName + ":other", codes.NotFound, []string{"built into every node"}},
	} {
		_, err := n.PullImage(t.Context(), &runtimeapi.PullImageRequest{Image: &runtimeapi.ImageSpec{Image: tc.ref}})
		if status.Code(err) != tc.code {
			t.Errorf("%s: code %s, want %s", tc.ref, status.Code(err), tc.code)
		}
		for _, w := range tc.want {
			if err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("%s:\ngot  %v\nwant %s", tc.ref, err, w)
			}
		}
	}
	if left, _ := os.ReadDir(filepath.Join(n.dir, "images/blobs/ingest")); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

// TestPullAuth sends credentials to the image's registry and to nobody else.
func TestPullAuth(t *testing.T) {
	t.Parallel()
	var leaked atomic.Bool
	mirror := serve(t, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "" {
				leaked.Store(true)
			}
			h.ServeHTTP(w, r)
		})
	})
	var private atomic.Bool
	host := serve(t, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if u, p, _ := r.BasicAuth(); private.Load() && (u != "me" || p != "secret") {
				w.Header().Set("WWW-Authenticate", `Basic realm="here"`)
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			h.ServeHTTP(w, r)
		})
	})
	push(t, host+"/app:v1", build(t, "", layer(t, "f=1")))
	private.Store(true)
	n := openNode(t, t.TempDir(), amd64(image.Options{Mirrors: map[string][]string{host: {"http://" + mirror}}}))
	if _, err := n.Pull(t.Context(), host+"/app:v1", image.PullOptions{}); err == nil {
		t.Error("pulled without credentials")
	}
	_, err := n.PullImage(t.Context(), &runtimeapi.PullImageRequest{
		Image: &runtimeapi.ImageSpec{Image: host + "/app:v1"}, Auth: &runtimeapi.AuthConfig{Auth: "bWU6c2VjcmV0"}, // me:secret
	})
	if err != nil {
		t.Error(err)
	}
	if leaked.Load() {
		t.Error("the mirror saw credentials")
	}
}

// TestMirrors asks mirrors first and falls back, also in the middle of an image.
func TestMirrors(t *testing.T) {
	t.Parallel()
	img := build(t, "", layer(t, "f=from the image"), layer(t, "g=1"))
	var asked, namespace atomic.Value
	var served atomic.Int32
	good := serve(t, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.Contains(r.URL.Path, "/manifests/") && r.Method == http.MethodGet {
				asked.Store(r.URL.Path)
				namespace.Store(r.URL.Query().Get("ns"))
			}
			served.Add(1)
			h.ServeHTTP(w, r)
		})
	})
	push(t, good+"/cache/team/app:v1", img)
	origin := serve(t, nil)
	push(t, origin+"/team/app:v1", img)
	var lies atomic.Int32
	lying := serve(t, func(h http.Handler) http.Handler { // right manifests, wrong blobs
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.Contains(r.URL.Path, "/blobs/sha256:") && r.Method == http.MethodGet {
				if lies.Add(1) == 1 {
					fmt.Fprint(w, "nonsense") // of another length
					return
				}
				rec := httptest.NewRecorder() // of the right one
				h.ServeHTTP(rec, r)
				_, _ = w.Write(bytes.Repeat([]byte("x"), rec.Body.Len()))
				return
			}
			h.ServeHTTP(w, r)
		})
	})
	push(t, lying+"/team/app:v1", img)
	dead := porttest.Closed(t)

	for _, tc := range []struct {
		name, ref string
		mirrors   map[string][]string
		fromGood  bool
	}{
		{"the first", "registry.example/team/app:v1", map[string][]string{"registry.example": {"http://" + good + "/v2/cache"}}, true},
		{"the second", "registry.example/team/app:v1", map[string][]string{"registry.example": {dead, "http://" + good + "/cache"}}, true},
		{"for all", "registry.example/team/app:v1", map[string][]string{"*": {"http://" + good + "/cache/"}}, true},
		{"docker.io", "team/app:v1", map[string][]string{"docker.io": {"http://" + good + "/cache"}}, true},
		{"none has it", origin + "/team/app:v1", map[string][]string{origin: {dead, "http://" + good}}, false},
		{"wrong content", origin + "/team/app:v1", map[string][]string{origin: {"http://" + lying}}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			served.Store(0)
			n := openNode(t, t.TempDir(), amd64(image.Options{Mirrors: tc.mirrors}))
			got, err := n.Pull(t.Context(), tc.ref, image.PullOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if s := n.read(t, got, "f"); s != "from the image" {
				t.Errorf("f is %q", s)
			}
			if tc.fromGood {
				if asked.Load() != "/v2/cache/team/app/manifests/v1" || !strings.HasSuffix(namespace.Load().(string), ".io") && namespace.Load() != "registry.example" {
					t.Errorf("asked for %v with ns=%v", asked.Load(), namespace.Load())
				}
				if served.Load() == 0 {
					t.Error("the mirror was not asked")
				}
			}
		})
	}
	// nobody has it: the registry's own answer comes first
	n := openNode(t, t.TempDir(), amd64(image.Options{Mirrors: map[string][]string{origin: {dead}}}))
	_, err := n.Pull(t.Context(), origin+"/none", image.PullOptions{})
	if err == nil || !strings.Contains(err.Error(), "/none:latest: not found") || !strings.Contains(err.Error(), "mirrors failed as well: "+dead) {
		t.Errorf("got %v", err)
	}
}

// TestPullOnce coalesces pulls of one image and lets the last waiter end them.
func TestPullOnce(t *testing.T) {
	t.Parallel()
	var gets atomic.Int32
	arrived, goOn := make(chan struct{}, 1), make(chan struct{})
	host := serve(t, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/manifests/") {
				gets.Add(1)
				select {
				case arrived <- struct{}{}:
				default:
				}
				select {
				case <-goOn:
				case <-r.Context().Done():
					return
				}
			}
			h.ServeHTTP(w, r)
		})
	})
	push(t, host+"/app:v1", build(t, "", layer(t, "f=1")))
	n := openNode(t, t.TempDir(), amd64(image.Options{}))

	// all waiters leave: the work ends
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() { _, err := n.Pull(ctx, host+"/app:v1", image.PullOptions{}); gone <- err }()
	<-arrived
	cancel()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}

	// many at the same time are one
	gets.Store(0)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			ref := host + "/app:v1"
			if _, err := n.Pull(t.Context(), ref, image.PullOptions{}); err != nil {
				t.Errorf("%d: %v", i, err)
			}
		})
	}
	<-arrived
	close(goOn)
	wg.Wait()
	if got := gets.Load(); got > 8 || got < 1 {
		t.Errorf("%d requests", got)
	}
	if len(n.List()) != 1 {
		t.Errorf("%d images", len(n.List()))
	}
}

// TestResume takes a download up where the connection broke.
func TestResume(t *testing.T) {
	t.Parallel()
	var ranges []string
	var mu sync.Mutex
	host := serve(t, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodGet || !strings.Contains(r.URL.Path, "/blobs/") {
				h.ServeHTTP(w, r)
				return
			}
			mu.Lock()
			ranges = append(ranges, r.Header.Get("Range"))
			mu.Unlock()
			h.ServeHTTP(&breaking{ResponseWriter: w, left: 300 << 10}, r)
		})
	})
	img, err := random.Image(1<<20, 1)
	if err != nil {
		t.Fatal(err)
	}
	img = build(t, "", first(t, img))
	push(t, host+"/app:v1", img)
	n := openNode(t, t.TempDir(), amd64(image.Options{}))
	if _, err := n.Pull(t.Context(), host+"/app:v1", image.PullOptions{}); err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(ranges, func(s string) bool { return strings.HasPrefix(s, "bytes=307200-") }) {
		t.Errorf("ranges: %q", ranges)
	}
}

// breaking breaks the connection after some bytes.
type breaking struct {
	http.ResponseWriter
	left int
}

func (b *breaking) Write(p []byte) (int, error) {
	if len(p) > b.left {
		_, _ = b.ResponseWriter.Write(p[:b.left])
		b.ResponseWriter.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
	b.left -= len(p)
	return b.ResponseWriter.Write(p)
}

func first(t *testing.T, img v1.Image) v1.Layer {
	t.Helper()
	l, err := img.Layers()
	if err != nil {
		t.Fatal(err)
	}
	return l[0]
}

// TestPlatform chooses from an index, and says what there is if nothing fits.
func TestPlatform(t *testing.T) {
	t.Parallel()
	host := serve(t, nil)
	index := mutate.AppendManifests(empty.Index,
		mutate.IndexAddendum{Add: build(t, "", layer(t, "f=arm")), Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: "arm", Variant: "v7"}}},
		mutate.IndexAddendum{Add: build(t, "", layer(t, "f=amd")), Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: "amd64"}}},
	)
	ref, err := name.ParseReference(host + "/app:v1")
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.WriteIndex(ref, index); err != nil {
		t.Fatal(err)
	}
	digest, _ := index.Digest()
	n := openNode(t, t.TempDir(), amd64(image.Options{}))
	got, err := n.Pull(t.Context(), host+"/app:v1", image.PullOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if s := n.read(t, got, "f"); s != "amd" {
		t.Errorf("f is %q", s)
	}
	if want := []string{host + "/app@" + digest.String()}; !slices.Equal(got.RepoDigests, want) {
		t.Errorf("digests %v, want the index's %v", got.RepoDigests, want)
	}
	// the tag moves to another image; the first keeps its digest
	arm, err := n.Pull(t.Context(), host+"/app:v1", image.PullOptions{Platform: "linux/arm/v8"})
	if err != nil {
		t.Fatal(err)
	}
	old, err := n.Get(got.ID)
	if err != nil || len(old.RepoTags) != 0 || len(arm.RepoTags) != 1 {
		t.Errorf("%v %v %v", old, arm, err)
	}
	_, err = n.Pull(t.Context(), host+"/app:v1", image.PullOptions{Platform: "linux/s390x"})
	if err == nil || !strings.Contains(err.Error(), "no match for platform in manifest: linux/s390x") || !strings.Contains(err.Error(), "linux/arm/v7") {
		t.Errorf("got %v", err)
	}
}

// TestPlainHTTP does not fall back to HTTP for addresses that nobody named, private ones included.
func TestPlainHTTP(t *testing.T) {
	t.Parallel()
	host := serve(t, nil)
	push(t, host+"/app:v1", build(t, "", layer(t, "f=1")))
	transport := &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, network, host) // 10.0.0.5 is here, for this test
	}}
	n := openNode(t, t.TempDir(), amd64(image.Options{Transport: transport}))
	if _, err := n.Pull(t.Context(), "10.0.0.5:5000/app:v1", image.PullOptions{}); err == nil || !strings.Contains(err.Error(), "plain HTTP is not allowed") {
		t.Errorf("got %v", err)
	}
	n.close()
	n = openNode(t, n.dir, amd64(image.Options{Transport: transport, PlainHTTP: []string{"10.0.0.5:5000"}}))
	if _, err := n.Pull(t.Context(), "10.0.0.5:5000/app:v1", image.PullOptions{}); err != nil {
		t.Error(err)
	}
}

// TestWrongDiffID refuses an image whose configuration lies about its layers.
func TestWrongDiffID(t *testing.T) {
	t.Parallel()
	host := serve(t, nil)
	img := build(t, "", layer(t, "f=1"))
	cf, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	cf = cf.DeepCopy()
	cf.RootFS.DiffIDs[0].Hex = hex64
	if img, err = mutate.ConfigFile(img, cf); err != nil {
		t.Fatal(err)
	}
	push(t, host+"/app:v1", img)
	n := openNode(t, t.TempDir(), amd64(image.Options{}))
	_, err = n.Pull(t.Context(), host+"/app:v1", image.PullOptions{})
	if err == nil || !strings.Contains(err.Error(), "wrong diff id calculated on extraction") {
		t.Errorf("got %v", err)
	}
	n.close()
	for _, dir := range []string{"images/blobs/sha256", "images/records", "snapshots/layers", "snapshots/tmp"} {
		if left, _ := os.ReadDir(filepath.Join(n.dir, dir)); len(left) != 0 {
			t.Errorf("%s is not empty: %v", dir, left)
		}
	}
}
