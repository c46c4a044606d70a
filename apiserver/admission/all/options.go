package all

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	"sigs.k8s.io/yaml"
)

// Options say which plug-ins there are, as upstream's flags do.
type Options struct {
	// Enable names plug-ins that are wanted besides those that are on by default. Disable
	// names those that are not asked. A name that is not there is an error.
	Enable, Disable []string
	// Configurations are those of plug-ins, as YAML, by their names.
	Configurations map[string][]byte
}

// idle are plug-ins that upstream has on and that do nothing by default: what they are
// about (GenericWorkload) is off.
var idle = []string{"PodGroupProtection"}

// wants reports whether a plug-in is asked.
func (o *Options) wants(e entry) bool {
	return !slices.Contains(o.Disable, e.name) && (!e.off || slices.Contains(o.Enable, e.name))
}

func (o *Options) validate(plugins []entry) error {
	known := slices.Clone(idle)
	for _, e := range plugins {
		known = append(known, e.name)
	}
	unknown := func(flag, name string) error {
		slices.Sort(known)
		return fmt.Errorf("%s: there is no admission plug-in %q; there are %s", flag, name, strings.Join(known, ", "))
	}
	for _, name := range o.Enable {
		if !slices.Contains(known, name) {
			return unknown("enable-admission-plugins", name)
		}
		if slices.Contains(o.Disable, name) {
			return fmt.Errorf("enable-admission-plugins: %s is in disable-admission-plugins, too", name)
		}
	}
	for _, name := range o.Disable {
		if !slices.Contains(known, name) && name != "MeshMembership" {
			return unknown("disable-admission-plugins", name)
		}
	}
	return nil
}

// Load reads an AdmissionConfiguration (apiserver.config.k8s.io/v1): the configuration of
// a plug-in is in it, or in a file beside it.
func Load(file string) (map[string][]byte, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("admission-control-config-file: %w", err)
	}
	var c apiserverv1.AdmissionConfiguration
	if err := yaml.UnmarshalStrict(data, &c); err != nil {
		return nil, fmt.Errorf("admission-control-config-file: %s: %w", file, err)
	}
	if c.Kind != "AdmissionConfiguration" || c.APIVersion != apiserverv1.SchemeGroupVersion.String() {
		return nil, fmt.Errorf("admission-control-config-file: %s is a %s of %q, want an AdmissionConfiguration of %s", file, c.Kind, c.APIVersion, apiserverv1.SchemeGroupVersion)
	}
	out := map[string][]byte{}
	for _, p := range c.Plugins {
		if out[p.Name], err = read(file, p.Path, p.Configuration); err != nil {
			return nil, fmt.Errorf("admission-control-config-file: %s: %w", p.Name, err)
		}
	}
	return out, nil
}

func read(file, path string, inline *runtime.Unknown) ([]byte, error) {
	switch {
	case path == "" && inline == nil:
		return nil, nil
	case path == "":
		return inline.Raw, nil
	case !filepath.IsAbs(path):
		path = filepath.Join(filepath.Dir(file), path)
	}
	return os.ReadFile(path)
}
