package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// module is where this program's go.mod is, from the repository's root.
const module = "test/conformance"

// build compiles upstream's programs into dir. The go command knows what is up to date.
func build(ctx context.Context, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"build", "-ldflags", "-s -w", "-o", filepath.Join(dir, "ginkgo"), "github.com/onsi/ginkgo/v2/ginkgo"},
		{"build", "-ldflags", "-s -w", "-o", filepath.Join(dir, "agnhost"), "k8s.io/kubernetes/test/images/agnhost"},
		{"build", "-ldflags", "-s -w", "-o", filepath.Join(dir, "sample-apiserver"), "k8s.io/sample-apiserver"},
		{"build", "-ldflags", "-s -w", "-o", filepath.Join(dir, "etcd"), "go.etcd.io/etcd/server/v3"},
		{"test", "-c", "-vet=off", "-ldflags", "-s -w", "-o", filepath.Join(dir, "e2e.test"), "k8s.io/kubernetes/test/e2e"},
	} {
		cmd := exec.CommandContext(ctx, "go", args...)
		cmd.Dir = module
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("go %s: %w\n%s", args[len(args)-1], err, out)
		}
	}
	return nil
}
