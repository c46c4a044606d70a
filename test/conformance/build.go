package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// module is where this program's go.mod is, from the repository's root.
const module = "test/conformance"

// The tests take from these which rules of their own version apply.
const (
	release = "v1.37.2" // of k8s.io/kubernetes in go.mod
	ldflags = "-s -w -X k8s.io/component-base/version.gitVersion=" + release +
		" -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=37"
)

// build compiles upstream's programs into dir. The go command knows what is up to date.
func build(ctx context.Context, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"build", "-o", filepath.Join(dir, "ginkgo"), "github.com/onsi/ginkgo/v2/ginkgo"},
		{"build", "-o", filepath.Join(dir, "agnhost"), "k8s.io/kubernetes/test/images/agnhost"},
		{"build", "-o", filepath.Join(dir, "sample-apiserver"), "k8s.io/sample-apiserver"},
		{"build", "-o", filepath.Join(dir, "etcd"), "go.etcd.io/etcd/server/v3"},
		{"test", "-c", "-vet=off", "-o", filepath.Join(dir, "e2e.test"), "k8s.io/kubernetes/test/e2e"},
	} {
		args = slices.Insert(args, 1, "-ldflags", ldflags)
		cmd := exec.CommandContext(ctx, "go", args...)
		cmd.Dir = module
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("go %s: %w\n%s", args[len(args)-1], err, out)
		}
	}
	return nil
}
