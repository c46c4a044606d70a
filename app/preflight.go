package app

import (
	"os"
	"path/filepath"

	"github.com/periplus/periplus/containers"
)

// preflight finds what could only fail, before anything is written: the state
// directory stays untouched.
func preflight(c *Config) error {
	if c.RuntimeEndpoint == "" {
		if err := containers.CheckOCIRuntime(c.OCIRuntime); err != nil {
			return err
		}
	}
	// Another peri here is the better explanation of a port in use.
	if _, err := os.Stat(filepath.Join(c.StateDir, markerName)); err == nil {
		release, err := openState(c.StateDir)
		if err != nil {
			return err
		}
		release()
	}
	for flag, port := range map[string]int{"api-port": c.APIPort, "kubelet-port": c.KubeletPort} {
		if port == 0 {
			continue // it does not listen there
		}
		l, err := listen(c.BindAddress, port, flag)
		if err != nil {
			return err
		}
		if err := l.Close(); err != nil {
			return err
		}
	}
	return nil
}
