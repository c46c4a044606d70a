package containers

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/periplus/periplus/containers/oci"
	"github.com/periplus/periplus/linux/process"
)

// rewriteSpec puts new limits into the configuration of a container that has
// not been started.
func (r *Runtime) rewriteSpec(c *container, res *runtimeapi.LinuxContainerResources) error {
	path := filepath.Join(r.containerDir(c.rec.ID), "config.json")
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var spec specs.Spec
	if err := json.Unmarshal(b, &spec); err != nil {
		return err
	}
	devices := spec.Linux.Resources.Devices
	spec.Linux.Resources = oci.Update(res, r.host)
	spec.Linux.Resources.Devices = devices
	return writeRecord(path, &spec)
}

// criSignals is the CRI's enumeration by signal number.
var criSignals = func() map[syscall.Signal]runtimeapi.Signal {
	m := map[syscall.Signal]runtimeapi.Signal{}
	for value, name := range runtimeapi.Signal_name {
		name = strings.NewReplacer("PLUS", "+", "MINUS", "-", "SIGNAL_", "").Replace(name)
		sig, err := process.ParseSignal(name)
		if err != nil {
			continue
		}
		// Two names of one signal: the one that comes first counts.
		if old, taken := m[sig]; !taken || runtimeapi.Signal(value) < old {
			m[sig] = runtimeapi.Signal(value)
		}
	}
	return m
}()

func criSignal(sig syscall.Signal) runtimeapi.Signal { return criSignals[sig] }
