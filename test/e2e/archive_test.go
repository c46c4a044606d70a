package e2e_test

import (
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/rogpeppe/go-internal/testscript"
)

// archive writes one of the built images as an archive, under another name.
func archive(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: archive BUILT NAME FILE")
	}
	built, err := builtImages()
	ts.Check(err)
	img, ok := built[args[0]]
	if !ok {
		ts.Fatalf("no image %q is built", args[0])
	}
	tag, err := name.NewTag(args[1])
	ts.Check(err)
	ts.Check(tarball.WriteToFile(ts.MkAbs(args[2]), tag, img))
}
