package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"k8s.io/kubernetes/test/utils/image"

	"github.com/periplus/periplus/test/images"
)

// A stocked image is one that the tests use, under upstream's name.
type stocked struct {
	ref     name.Tag
	image   v1.Image
	archive string
}

// archive makes the images and writes an archive of each.
func archive(ctx context.Context, dir string) ([]stocked, error) {
	program, err := os.ReadFile(filepath.Join(dir, "agnhost"))
	if err != nil {
		return nil, err
	}
	agnhost, err := agnhost(ctx, program)
	if err != nil {
		return nil, err
	}
	busybox, err := images.Busybox()
	if err != nil {
		return nil, err
	}
	nginx, err := images.Nginx(ctx)
	if err != nil {
		return nil, err
	}
	pause, err := images.Files(nil, images.File{Path: "agnhost", Mode: 0o755, Data: program})
	if err != nil {
		return nil, err
	}
	made := map[image.ImageID]v1.Image{}
	// Two that differ in what they serve: rollouts go from one to the other.
	for id, picture := range map[image.ImageID]string{image.Nautilus: "nautilus.jpg", image.Kitten: "kitten.jpg"} {
		site, err := images.Files(nil, images.File{Path: "agnhost", Mode: 0o755, Data: program},
			images.File{Path: "data.json", Mode: 0o644, Data: fmt.Appendf(nil, "{\n    \"image\": %q\n}\n", picture)})
		if err != nil {
			return nil, err
		}
		if made[id], err = mutate.Config(site, v1.Config{Entrypoint: []string{"/agnhost"}, Cmd: []string{"test-webserver"}}); err != nil {
			return nil, err
		}
	}
	if err := extension(dir, made); err != nil {
		return nil, err
	}
	maps.Copy(made, map[image.ImageID]v1.Image{image.BusyBox: busybox, image.Nginx: nginx, image.NginxNew: nginx})
	for id, c := range map[image.ImageID]struct {
		from v1.Image
		v1.Config
	}{
		image.Agnhost:     {agnhost, v1.Config{Entrypoint: []string{"/agnhost"}, Cmd: []string{"pause"}}},
		image.AgnhostPrev: {agnhost, v1.Config{Entrypoint: []string{"/agnhost"}, Cmd: []string{"pause"}}},
		image.NonRoot:     {busybox, v1.Config{Cmd: []string{"sh"}, User: "1234"}},
		image.Pause:       {pause, v1.Config{Entrypoint: []string{"/agnhost", "pause"}}},
	} {
		c.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
		if made[id], err = mutate.Config(c.from, c.Config); err != nil {
			return nil, err
		}
	}
	var stock []stocked
	for id, img := range made {
		full := image.GetE2EImage(id)
		ref, err := name.NewTag(full)
		if err != nil {
			return nil, err
		}
		file := filepath.Join(dir, strings.NewReplacer("/", "_", ":", "_").Replace(full)+".tar")
		if err := tarball.WriteToFile(file, ref, img); err != nil {
			return nil, fmt.Errorf("%s: %w", full, err)
		}
		stock = append(stock, stocked{ref, img, file})
	}
	return stock, nil
}

// extension adds the images of an extension API server: upstream's sample, and its etcd.
func extension(dir string, made map[image.ImageID]v1.Image) error {
	for id, at := range map[image.ImageID]string{image.APIServer: "sample-apiserver", image.Etcd: "usr/local/bin/etcd"} {
		program, err := os.ReadFile(filepath.Join(dir, filepath.Base(at)))
		if err != nil {
			return err
		}
		files, err := images.Files(nil, images.File{Path: at, Mode: 0o755, Data: program})
		if err != nil {
			return err
		}
		if made[id], err = mutate.Config(files, v1.Config{Entrypoint: []string{"/" + at}}); err != nil {
			return err
		}
	}
	return nil
}

// agnhost is upstream's program with the tools that its image has from Alpine, here
// from Debian.
func agnhost(ctx context.Context, program []byte) (v1.Image, error) {
	passwd := "root:x:0:0:root:/root:/bin/sh\nuser-defined-in-image:x:1000:1000::/home:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
	group := "root:x:0:\nuser-defined-in-image:x:1000:\ngroup-defined-in-image:x:50000:user-defined-in-image\nnogroup:x:65534:\n"
	link := func(path, to string) images.File {
		return images.File{Path: path, Mode: os.ModeSymlink | 0o777, Data: []byte(to)}
	}
	return images.Debian{
		Packages: []string{"bash", "bind9-dnsutils", "coreutils", "curl", "dash", "findutils", "grep", "iproute2", "mawk",
			"netcat-openbsd", "procps", "sed", "socat", "util-linux", "wget"},
		Files: []images.File{
			{Path: "agnhost", Mode: 0o755, Data: program},
			link("agnhost-2", "agnhost"),
			// What the packages' scripts would have made.
			link("usr/bin/sh", "dash"), link("usr/bin/nc", "nc.openbsd"), link("usr/bin/awk", "mawk"),
			{Path: "uploads", Mode: os.ModeDir | 0o755},
			{Path: "etc/passwd", Mode: 0o644, Data: []byte(passwd)},
			{Path: "etc/group", Mode: 0o644, Data: []byte(group)},
		},
	}.Image(ctx)
}
