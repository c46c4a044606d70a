package images

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

// Files makes an image of the given files, with command as what it runs.
func Files(command []string, files ...File) (v1.Image, error) {
	l := newLayer()
	for _, f := range files {
		l.add(f)
	}
	return l.image(v1.Config{Cmd: command, Env: []string{"PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"}})
}

// Busybox makes an image of this machine's static busybox (Debian's package
// busybox-static): a shell and the usual small programs.
func Busybox(command ...string) (v1.Image, error) {
	exe, err := exec.LookPath("busybox")
	if err != nil {
		return nil, fmt.Errorf("busybox image: install the package busybox-static: %w", err)
	}
	data, err := os.ReadFile(exe)
	if err != nil {
		return nil, fmt.Errorf("busybox image: %w", err)
	}
	list, err := exec.Command(exe, "--list").Output() //nolint:noctx // prints a list and ends
	if err != nil {
		return nil, fmt.Errorf("busybox image: list the applets: %w", err)
	}
	if len(command) == 0 {
		command = []string{"sh"}
	}
	files := append(skeleton(), File{Path: "bin/busybox", Mode: 0o755, Data: data})
	for applet := range strings.FieldsSeq(string(list)) {
		if applet != "busybox" {
			files = append(files, File{Path: "bin/" + applet, Mode: os.ModeSymlink | 0o777, Data: []byte("busybox")})
		}
	}
	return Files(command, files...)
}

// skeleton is what programs expect of any root file system.
func skeleton() []File {
	return []File{
		{Path: "tmp", Mode: os.ModeDir | os.ModeSticky | 0o777},
		{Path: "var/tmp", Mode: os.ModeDir | os.ModeSticky | 0o777},
		{Path: "root", Mode: os.ModeDir | 0o700},
		{Path: "run", Mode: os.ModeDir | 0o755},
		{Path: "etc/passwd", Mode: 0o644, Data: []byte("root:x:0:0:root:/root:/bin/sh\nwww-data:x:33:33:www-data:/var/www:/usr/sbin/nologin\nredis:x:101:101::/var/lib/redis:/usr/sbin/nologin\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n")},
		{Path: "etc/group", Mode: 0o644, Data: []byte("root:x:0:\nadm:x:4:\nwww-data:x:33:\nredis:x:101:\nnogroup:x:65534:\n")},
	}
}

// configure sets what the image runs and which machine it is for.
func configure(img v1.Image, c v1.Config) (v1.Image, error) {
	file, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture = "linux", runtime.GOARCH
	file.Created = v1.Time{Time: made}
	file.Config = c
	return mutate.ConfigFile(img, file)
}
