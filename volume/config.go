package volume

import (
	"errors"
	"log/slog"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Config says where a Host keeps volumes and how it reads their content.
type Config struct {
	// Root is the kubelet's directory; volumes are under <Root>/pods. It must be absolute.
	Root string
	// Plugins are the known kinds of volumes, usually all.Plugins(). The first
	// that supports a volume gets it.
	Plugins []Plugin
	// Sources is what plug-ins read; if it is a Tracker too, the Host tells it
	// which pods are on the node.
	Sources Sources
	// Claims reads claims and their volumes; nil: pods with claims cannot be mounted.
	Claims Claims
	// Retry, if not nil, is called when an object changed that a pod needs whose
	// Mount failed last time, or that it refers to from an environment: trying
	// again is worth while. It must not block.
	Retry func(types.UID)
	// Failed, if not nil, is told when a refresh of a running pod's volumes failed
	// (the event FailedMount); the Host tries again by itself.
	Failed func(*corev1.Pod, *MountError)
	// Log defaults to slog.Default().
	Log *slog.Logger
}

func (c *Config) validate() error {
	switch {
	case !filepath.IsAbs(c.Root):
		return errors.New("volume: config: Root must be an absolute path, got " + c.Root)
	case len(c.Plugins) == 0:
		return errors.New("volume: config: Plugins is empty")
	case c.Sources == nil:
		return errors.New("volume: config: Sources is nil")
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	return nil
}

// A Tracker wants to know which pods are on the node, so that it can watch the
// objects they refer to and no others.
type Tracker interface {
	// AddPod starts watching what the pod refers to, or follows a change of it.
	AddPod(*corev1.Pod)
	// RemovePod forgets the pod.
	RemovePod(types.UID)
}
