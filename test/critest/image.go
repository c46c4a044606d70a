package main

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/periplus/periplus/test/images"
	"github.com/periplus/periplus/test/images/registry"
)

// staging is the repository of the suite's own images. The registry is the mirror of
// all, so the first part of a name is not in it.
const staging = "k8s-staging-cri-tools/"

const nginxConfig = `worker_processes 1;
pid /var/run/nginx.pid;
error_log /dev/stderr notice;
events { worker_connections 128; }
http {
	access_log /dev/stdout;
	server { listen %d; root /usr/share/nginx/html; index index.html; }
}
`

// push makes all images and puts them into the registry. It returns the digest of the
// one that is pulled by it.
func push(ctx context.Context, r *registry.Registry) (digest string, err error) {
	busybox, err := busybox(ctx)
	if err != nil {
		return "", err
	}
	nginx, err := images.Debian{
		// A shell and the programs that tests run beside the server.
		Packages: []string{"nginx", "dash", "coreutils", "util-linux", "procps", "busybox"},
		Files: []images.File{
			{Path: "usr/bin/sh", Mode: os.ModeSymlink | 0o777, Data: []byte("dash")},
			{Path: "usr/bin/grep", Mode: os.ModeSymlink | 0o777, Data: []byte("busybox")},
			{Path: "etc/nginx/nginx.conf", Mode: 0o644, Data: fmt.Appendf(nil, nginxConfig, 80)},
			{Path: "var/run", Mode: os.ModeDir | 0o755},
			{Path: "var/log/nginx", Mode: os.ModeDir | 0o755},
			{Path: "var/lib/nginx", Mode: os.ModeDir | 0o755},
		},
		Config: v1.Config{Cmd: []string{"nginx", "-g", "daemon off;"}, Env: path, StopSignal: "SIGQUIT"},
	}.Image(ctx)
	if err != nil {
		return "", err
	}
	nonewprivs, err := setUser(ctx)
	if err != nil {
		return "", err
	}
	made := map[string]v1.Image{
		"e2e-test-images/busybox:1.29-2": busybox,
		"e2e-test-images/nginx:1.14-2":   nginx,
		"e2e-test-images/nonewprivs:1.3": nonewprivs,
	}
	// Any web server would do for httpd: one that writes its name.
	if made["e2e-test-images/httpd:2.4.39-4"], err = command(nginx, "/bin/sh", "-c", "echo httpd starts; exec nginx -g 'daemon off;'"); err != nil {
		return "", err
	}
	hostnet, err := with(nginx, images.File{Path: "etc/nginx/nginx.conf", Mode: 0o644, Data: fmt.Appendf(nil, nginxConfig, 12003)})
	if err != nil {
		return "", err
	}
	made[staging+"hostnet-nginx-"+runtime.GOARCH+":latest"] = hostnet
	for name, user := range map[string]string{
		"uid": "1002", "username": "www-data", "uid-group": "1003:users", "username-group": "www-data:100",
	} {
		if made[staging+"test-image-user-"+name+":latest"], err = mutate.Config(busybox, v1.Config{Cmd: []string{"sh"}, User: user, Env: path}); err != nil {
			return "", err
		}
	}
	group := "root:x:0:\nusers:x:100:\ndefault-user:x:1000:\ngroup-defined-in-image:x:50000:default-user\nnogroup:x:65534:\n"
	passwd := "root:x:0:0:root:/root:/bin/sh\ndefault-user:x:1000:1000::/home/default-user:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/bin/false\n"
	predefined, err := with(busybox, images.File{Path: "etc/group", Mode: 0o644, Data: []byte(group)},
		images.File{Path: "etc/passwd", Mode: 0o644, Data: []byte(passwd)})
	if err != nil {
		return "", err
	}
	if made[staging+"test-image-predefined-group:latest"], err = mutate.Config(predefined, v1.Config{Cmd: []string{"sh"}, User: "1000", Env: path}); err != nil {
		return "", err
	}
	if made["pause:3.9"], err = with(busybox, images.File{Path: "pause", Mode: 0o644}); err != nil {
		return "", err
	}
	for _, name := range []string{
		"test-image-latest:latest", "test-image-tag:test", "test-image-tag:all", "test-image-digest:latest",
		"test-image-1:latest", "test-image-2:latest", "test-image-3:latest", "test-image-tags:1",
	} {
		if made[staging+name], err = with(busybox, images.File{Path: name, Mode: 0o644, Data: []byte(name)}); err != nil {
			return "", err
		}
	}
	made[staging+"test-image-tags:2"] = made[staging+"test-image-tags:1"]
	made[staging+"test-image-tags:3"] = made[staging+"test-image-tags:1"]
	for name, img := range made {
		if _, err := r.Push(ctx, name, img); err != nil {
			return "", err
		}
	}
	d, err := made[staging+"test-image-digest:latest"].Digest()
	return d.String(), err
}

// busybox is what upstream's image of that name is for the tests: Debian's busybox whose
// shell runs programs, not its own applets (one test hides a program), an ls that is a
// file of its own, ipcs and pgrep of other packages, and a top that needs no terminal.
func busybox(ctx context.Context) (v1.Image, error) {
	list, err := exec.CommandContext(ctx, "busybox", "--list").Output()
	if err != nil {
		return nil, fmt.Errorf("install the package busybox-static: %w", err)
	}
	var files []images.File
	for applet := range strings.FieldsSeq(string(list)) {
		if !slices.Contains([]string{"busybox", "ipcs", "pgrep", "top", "ls"}, applet) {
			files = append(files, images.File{Path: "usr/bin/" + applet, Mode: os.ModeSymlink | 0o777, Data: []byte("busybox")})
		}
	}
	top, err := program(ctx, "top")
	if err != nil {
		return nil, err
	}
	ls, err := os.ReadFile("/bin/busybox")
	if err != nil {
		return nil, err
	}
	return images.Debian{
		Packages: []string{"busybox", "util-linux", "procps"},
		Files: append(files, images.File{Path: "usr/bin/top", Mode: 0o755, Data: top},
			images.File{Path: "usr/bin/ls", Mode: 0o755, Data: ls}),
		Config: v1.Config{Cmd: []string{"sh"}, Env: path},
	}.Image(ctx)
}

// program builds a command of this module.
func program(ctx context.Context, name string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "critest-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	exe := filepath.Join(dir, name)
	if _, err := run(ctx, "build", "-ldflags", "-s -w", "-o", exe, "./"+name); err != nil {
		return nil, err
	}
	return os.ReadFile(exe)
}

// setUser makes the image of a program that becomes root when anybody runs it.
func setUser(ctx context.Context) (v1.Image, error) {
	program, err := program(ctx, "nonewprivs")
	if err != nil {
		return nil, err
	}
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	if err := w.WriteHeader(&tar.Header{Name: "nnp", Mode: 0o4755, Size: int64(len(program)), Typeflag: tar.TypeReg}); err != nil {
		return nil, err
	}
	if _, err := w.Write(program); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	packed, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(layer.Bytes())), nil })
	if err != nil {
		return nil, err
	}
	base, err := images.Files(nil, images.File{Path: "tmp", Mode: os.ModeDir | 0o777})
	if err != nil {
		return nil, err
	}
	img, err := mutate.AppendLayers(base, packed)
	if err != nil {
		return nil, err
	}
	return mutate.Config(img, v1.Config{Entrypoint: []string{"/nnp"}, Env: path})
}

var path = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}

// with adds a layer of files to an image.
func with(img v1.Image, files ...images.File) (v1.Image, error) {
	top, err := images.Files(nil, files...)
	if err != nil {
		return nil, err
	}
	layers, err := top.Layers()
	if err != nil {
		return nil, err
	}
	return mutate.AppendLayers(img, layers...)
}

// command is an image that runs something else.
func command(img v1.Image, args ...string) (v1.Image, error) {
	c, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	config := *c.Config.DeepCopy()
	config.Cmd = args
	return mutate.Config(img, config)
}
