package hostpath

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/periplus/periplus/volume"
)

type plugin struct{}

var _ volume.Plugin = plugin{}

// New returns the plug-in.
func New() volume.Plugin { return plugin{} }

func (plugin) Name() string                   { return "kubernetes.io/host-path" }
func (plugin) Supports(v *corev1.Volume) bool { return v.HostPath != nil }
func (plugin) Live() bool                     { return false }

func (plugin) SetUp(_ context.Context, r volume.Request) (volume.Mounted, error) {
	path := r.Volume.HostPath.Path
	for name := range strings.SplitSeq(path, "/") {
		if name == ".." {
			return volume.Mounted{}, fmt.Errorf("invalid HostPath %q: must not contain '..'", path)
		}
	}
	kind := corev1.HostPathUnset
	if r.Volume.HostPath.Type != nil {
		kind = *r.Volume.HostPath.Type
	}
	if err := check(path, kind); err != nil {
		return volume.Mounted{}, err
	}
	return volume.Mounted{HostPath: path}, nil
}

// TearDown has nothing to do: the path is the node's.
func (plugin) TearDown(context.Context, string) error { return nil }

func check(path string, kind corev1.HostPathType) error {
	info, err := os.Stat(path)
	absent := errors.Is(err, fs.ErrNotExist)
	if err != nil && !absent {
		return fmt.Errorf("hostPath type check failed: %w", err)
	}
	var mode fs.FileMode
	if !absent {
		mode = info.Mode()
	}
	is := func(t fs.FileMode, what string) error {
		if absent || mode&(fs.ModeType) != t {
			return fmt.Errorf("hostPath type check failed: %s is not a %s", path, what)
		}
		return nil
	}
	switch kind {
	case corev1.HostPathUnset:
		if absent { // the container runtimes people know create a directory
			return os.MkdirAll(path, 0o755)
		}
		return nil
	case corev1.HostPathDirectoryOrCreate:
		if absent {
			return os.MkdirAll(path, 0o755)
		}
		return is(fs.ModeDir, "directory")
	case corev1.HostPathDirectory:
		return is(fs.ModeDir, "directory")
	case corev1.HostPathFileOrCreate:
		if absent {
			return create(path)
		}
		return is(0, "file")
	case corev1.HostPathFile:
		return is(0, "file")
	case corev1.HostPathSocket:
		return is(fs.ModeSocket, "socket file")
	case corev1.HostPathCharDev:
		return is(fs.ModeDevice|fs.ModeCharDevice, "character device")
	case corev1.HostPathBlockDev:
		return is(fs.ModeDevice, "block device")
	}
	return fmt.Errorf("%s is an invalid volume type", kind)
}

func create(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	return f.Close()
}
