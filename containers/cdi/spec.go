package cdi

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// ErrUnresolvable is returned when no file describes a device that is asked for.
var ErrUnresolvable = errors.New("unresolvable CDI devices")

// Dirs are where files are looked for; those of a later directory win.
var Dirs = []string{"/etc/cdi", "/var/run/cdi"}

// A file describes the devices of one kind.
type file struct {
	Version string   `json:"cdiVersion"`
	Kind    string   `json:"kind"` // "vendor.com/class"
	Devices []device `json:"devices"`
	Edits   Edits    `json:"containerEdits"` // for whoever gets one of them
}

type device struct {
	Name  string `json:"name"`
	Edits Edits  `json:"containerEdits"`
}

// Edits are changes to a container's configuration.
type Edits struct {
	Env            []string     `json:"env"`
	DeviceNodes    []DeviceNode `json:"deviceNodes"`
	Mounts         []Mount      `json:"mounts"`
	Hooks          []Hook       `json:"hooks"`
	AdditionalGIDs []uint32     `json:"additionalGids"`
}

// A DeviceNode is made in the container. What is not given is as on the machine.
type DeviceNode struct {
	Path        string  `json:"path"`
	HostPath    string  `json:"hostPath"`
	Type        string  `json:"type"`
	Major       int64   `json:"major"`
	Minor       int64   `json:"minor"`
	FileMode    *uint32 `json:"fileMode"`
	Permissions string  `json:"permissions"`
	UID         *uint32 `json:"uid"`
	GID         *uint32 `json:"gid"`
}

// A Mount is a bind mount unless its type says something else.
type Mount struct {
	HostPath      string   `json:"hostPath"`
	ContainerPath string   `json:"containerPath"`
	Type          string   `json:"type"`
	Options       []string `json:"options"`
}

// A Hook is run by the OCI runtime.
type Hook struct {
	HookName string   `json:"hookName"`
	Path     string   `json:"path"`
	Args     []string `json:"args"`
	Env      []string `json:"env"`
	Timeout  *int     `json:"timeout"`
}

// Find returns the edits for devices, "vendor.com/class=name" each: first those of a
// kind, once, then the device's own.
func Find(dirs []string, names []string) ([]Edits, error) {
	files, broken := load(dirs)
	var out []Edits
	var missing []string
	kinds := map[*file]bool{}
	for _, name := range names {
		kind, dev, _ := strings.Cut(name, "=")
		i := slices.IndexFunc(files, func(f *file) bool {
			return f.Kind == kind && slices.ContainsFunc(f.Devices, func(d device) bool { return d.Name == dev })
		})
		if i < 0 {
			missing = append(missing, name)
			continue
		}
		f := files[i]
		if !kinds[f] {
			kinds[f] = true
			out = append(out, f.Edits)
		}
		j := slices.IndexFunc(f.Devices, func(d device) bool { return d.Name == dev })
		out = append(out, f.Devices[j].Edits)
	}
	if len(missing) > 0 {
		err := fmt.Errorf("%w %s", ErrUnresolvable, strings.Join(missing, ", "))
		return nil, errors.Join(append([]error{err}, broken...)...)
	}
	return out, nil
}

// load reads all files, the ones that win first. One that cannot be read is no reason
// to refuse the devices of others.
func load(dirs []string) (files []*file, broken []error) {
	for _, dir := range slices.Backward(dirs) {
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			broken = append(broken, err)
		}
		for _, e := range entries {
			if ext := filepath.Ext(e.Name()); ext != ".json" && ext != ".yaml" {
				continue
			}
			path := filepath.Join(dir, e.Name())
			data, err := os.ReadFile(path)
			f := &file{}
			if err == nil {
				err = yaml.Unmarshal(data, f) // JSON is YAML
			}
			if err != nil {
				broken = append(broken, fmt.Errorf("CDI file %s: %w", path, err))
				continue
			}
			files = append(files, f)
		}
	}
	return files, broken
}
