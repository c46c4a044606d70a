package all

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/periplus/periplus/cni"
	"github.com/periplus/periplus/cni/hostgw"
	"github.com/periplus/periplus/cni/vxlan"
)

// Backbones returns the constructor of each backbone by name.
func Backbones() map[string]func() (cni.Backbone, error) {
	return map[string]func() (cni.Backbone, error){
		"vxlan":  func() (cni.Backbone, error) { return vxlan.New(vxlan.Config{}) },
		"direct": func() (cni.Backbone, error) { return hostgw.New() },
	}
}

// BackboneNames lists them.
func BackboneNames() []string { return slices.Sorted(maps.Keys(Backbones())) }

// NewBackbone makes the backbone of that name.
func NewBackbone(name string) (cni.Backbone, error) {
	f, ok := Backbones()[name]
	if !ok {
		return nil, fmt.Errorf("pod network %q is unknown, must be one of %s", name, strings.Join(BackboneNames(), ", "))
	}
	return f()
}
