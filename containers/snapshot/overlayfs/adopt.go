package overlayfs

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/periplus/periplus/containers/snapshot"
	"github.com/periplus/periplus/linux/fsat"
)

// adopt gives the directories that a layer uses without describing them the
// attributes that they have below. needsParent is true if one of them is
// something else than a directory there, a link for instance: then the layer's
// files belong where the link leads.
func adopt(fs string, parent *layer, implicit []string) (needsParent bool, err error) {
	for _, p := range implicit {
		from, conflict := below(parent, p)
		switch {
		case conflict:
			return true, nil
		case from == "":
			continue
		}
		if err := fsat.CopyAttributes(from, filepath.Join(fs, p), snapshot.OverlayAttr); err != nil {
			return false, err
		}
	}
	return false, nil
}

// below finds the directory p as the layers from l down show it together. It is
// "" if there is none; conflict is true if p leads through something else.
func below(l *layer, p string) (dir string, conflict bool) {
	parts := strings.Split(p, "/")
	if p == "." {
		parts = nil
	}
layers:
	for ; l != nil; l = l.parent {
		dir := filepath.Join(l.dir, "fs")
		hides := false // this layer hides those below it on the way to p
		for _, name := range parts {
			dir = filepath.Join(dir, name)
			fi, err := os.Lstat(dir)
			switch {
			case err != nil && hides:
				return "", false
			case err != nil:
				continue layers
			case whiteout(fi):
				return "", false
			case !fi.IsDir():
				return "", true
			}
			hides = hides || fsat.Getxattr(dir, "trusted.overlay.opaque") == "y"
		}
		return dir, false
	}
	return "", false
}
