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

	"github.com/periplus/periplus/apiserver/admission"
)

// Options say which plug-ins there are, as upstream's flags do.
type Options struct {
	// Enable names plug-ins that are wanted besides those that are on by default: a name
	// that is not there is an error. Disable names those that are not asked.
	Enable, Disable []string
	// Configurations are those of plug-ins, as YAML, by their names.
	Configurations map[string][]byte
}

// elsewhere are plug-ins whose work is done by another part of the server.
var elsewhere = []string{"PodResizeValidator", "PodTopologyLabels", "NodeDeclaredFeatureValidator", "PodGroupProtection"}

func (o *Options) validate(chain admission.Chain) error {
	known := slices.Clone(elsewhere)
	for _, p := range chain {
		known = append(known, p.Name())
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
