package all

import "github.com/periplus/periplus/volume"

// Plugins returns a new plug-in of each kind.
func Plugins() []volume.Plugin { return nil }
