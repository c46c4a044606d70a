package repo_test

import (
	"slices"
	"strings"
	"testing"
)

// rooms says which other rooms each room may import. base may be imported by all.
var rooms = map[string][]string{
	"base":        {},
	"linux":       {},
	"store":       {},
	"client":      {},
	"journey":     {"client", "linux"},
	"cri":         {"linux"},
	"cni":         {"linux"},
	"volume":      {"linux", "client", "csi"},
	"csi":         {"linux", "client", "journey", "controllers"},
	"apiserver":   {"store", "client", "journey", "quota"},
	"controllers": {"client", "journey", "quota"},
	"scheduler":   {"client", "journey"},
	"kubelet":     {"client", "cri", "cni", "volume", "linux", "journey"},
	"containers":  {"cri", "cni", "linux"},
	"proxy":       {"client", "linux", "journey"},
	"dns":         {"client", "linux"},
	"l7":          {},
	"quota":       {},
	"gateway":     {"client", "l7", "journey"},
	"mesh":        {"client", "l7", "linux", "journey"},
	"insight":     {"client"},
	"lab":         {"linux"},
	"hollow":      {"client"},
	"apitest":     {"apiserver", "client", "controllers", "journey", "scheduler", "store"},
	"ctl":         {"app", "client", "containers", "cri", "hollow", "insight", "journey", "kubelet", "linux", "mesh"},
	"app":         nil, // the wiring room: everything but ctl and cmd
	"cmd":         nil,
	"test":        nil,
	"internal":    nil,
}

// confined lists modules that only some folders may import.
var confined = []struct {
	module  string
	folders []string
	why     string
}{
	{"golang.org/x/sys/unix", []string{"linux"}, "system calls live in linux"},
	{"github.com/vishvananda/netlink", []string{"linux"}, "netlink lives in linux"},
	{"github.com/google/nftables", []string{"linux"}, "nftables live in linux"},
	{"github.com/mdlayher/netlink", []string{"linux"}, "netlink lives in linux"},
	{"go.etcd.io/etcd", []string{"store/etcd", "app"}, "only store/etcd knows etcd"},
	{"github.com/google/go-containerregistry", []string{"containers", "ctl/image", "test"}, "images are the runtime's"},
	{"k8s.io/kubernetes", []string{"test/kinds"}, "Periplus is its own implementation"},
	{"k8s.io/kubectl", []string{"ctl", "internal"}, "kubectl is a verb"},
}

func TestRoomsImportOnlyWhatTheyMay(t *testing.T) {
	t.Parallel()
	for _, s := range all(t) {
		own := room(s.path)
		allowed, known := rooms[own]
		if !known {
			if own != s.path { // a file in the root has no room
				t.Errorf("%s: %s is not in the table of rooms", s.path, own)
			}
			continue
		}
		for _, i := range s.imports() {
			if !strings.HasPrefix(i, "./") {
				continue
			}
			other := room(i)
			switch {
			case other == own || other == "base" || own == "cmd" || own == "test" || own == "internal":
			case other == "test" && !s.test:
				t.Errorf("%s imports %s: the product does not import tests", s.path, i)
			case s.test: // tests may put rooms together
			case own == "app" && other != "ctl" && other != "cmd":
			case !slices.Contains(allowed, other):
				t.Errorf("%s imports %s: %s may import only base, %s", s.path, i, own, strings.Join(allowed, ", "))
			}
		}
	}
}

func TestConfinedModules(t *testing.T) {
	t.Parallel()
	for _, s := range all(t) {
		if s.test {
			continue
		}
		for _, i := range s.imports() {
			for _, c := range confined {
				if i != c.module && !strings.HasPrefix(i, c.module+"/") {
					continue
				}
				within := slices.ContainsFunc(c.folders, func(f string) bool { return s.dir == f || strings.HasPrefix(s.dir, f+"/") })
				if !within {
					t.Errorf("%s imports %s: %s", s.path, i, c.why)
				}
			}
		}
	}
}

// plugged are folders whose children are implementations of one contract, and so
// do not know each other. all/ lists them and …test/ tests them.
var plugged = []string{"controllers", "scheduler", "apiserver/admission", "volume", "cni", "proxy", "ctl"}

func TestSiblingsDoNotImportSiblings(t *testing.T) {
	t.Parallel()
	// kubectl is what other verbs find the cluster with.
	shared := []string{"ctl/kubectl", "volume/source"}
	for _, s := range all(t) {
		for _, parent := range plugged {
			own, ok := childOf(parent, s.dir)
			if !ok || own == "all" || strings.HasSuffix(own, "test") || s.test {
				continue
			}
			for _, i := range s.imports() {
				other, ok := childOf(parent, strings.TrimPrefix(i, "./"))
				if ok && other != own && !slices.Contains(shared, parent+"/"+other) {
					t.Errorf("%s imports %s: its sibling. What they share belongs into %s", s.path, i, parent)
				}
			}
		}
	}
}

// childOf returns the folder below parent that dir is in.
func childOf(parent, dir string) (string, bool) {
	rest, ok := strings.CutPrefix(dir, parent+"/")
	if !ok {
		return "", false
	}
	child, _, _ := strings.Cut(rest, "/")
	return child, true
}
