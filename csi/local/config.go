package local

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
)

// Name is the driver's name.
const Name = "local.csi.periplus.io"

// TopologyKey is the node label that says which node a volume is on.
const TopologyKey = "topology.local.csi.periplus.io/node"

// Config of the driver.
type Config struct {
	// Dir holds volumes and snapshots. It must be absolute.
	Dir string
	// Node is the name of the node.
	Node string
	// Version is what the driver says it is.
	Version string
	// MaxVolumes is how many volumes a node takes; 0 means no limit.
	MaxVolumes int64
	// Log defaults to slog.Default().
	Log *slog.Logger
}

func (c *Config) validate() error {
	switch {
	case !filepath.IsAbs(c.Dir):
		return fmt.Errorf("csi/local: Dir %q must be an absolute path", c.Dir)
	case c.Node == "":
		return errors.New("csi/local: Node is required")
	}
	if c.Version == "" {
		c.Version = "v0.1.0"
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	return nil
}
