package all

import (
	"github.com/periplus/periplus/volume"
	"github.com/periplus/periplus/volume/configmap"
	"github.com/periplus/periplus/volume/downwardapi"
	"github.com/periplus/periplus/volume/emptydir"
	"github.com/periplus/periplus/volume/hostpath"
	"github.com/periplus/periplus/volume/image"
	"github.com/periplus/periplus/volume/local"
	"github.com/periplus/periplus/volume/projected"
	"github.com/periplus/periplus/volume/secret"
)

// Plugins returns a new plug-in of each kind. others are those that need more of the
// node than a Request, made by the caller: volume/csi.
func Plugins(others ...volume.Plugin) []volume.Plugin {
	return append([]volume.Plugin{
		configmap.New(),
		downwardapi.New(),
		emptydir.New(),
		hostpath.New(),
		image.New(),
		projected.New(),
		secret.New(),
		local.New(),
	}, others...)
}
