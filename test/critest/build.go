package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

const (
	// module is where this program's go.mod is, from the repository's root.
	module = "test/critest"
	// tools is the module that has the suite.
	tools = "sigs.k8s.io/cri-tools"
)

// pulledByDigest is the reference in the suite's source that names content that only
// upstream's registry has.
var pulledByDigest = regexp.MustCompile(`test-image-digest@(sha256:[0-9a-f]{64})`)

// build compiles the suite into dir, with digest as that of the image that is pulled
// by its digest. It returns the program and the module's version.
func build(ctx context.Context, dir, digest string) (program, version string, err error) {
	out, err := run(ctx, "list", "-m", "-f", "{{.Version}} {{.Dir}}", tools)
	if err != nil {
		return "", "", err
	}
	version, source, _ := strings.Cut(strings.TrimSpace(out), " ")
	modfile, err := replace(dir, source, digest)
	if err != nil {
		return "", "", err
	}
	program = filepath.Join(dir, "critest.test")
	_, err = run(ctx, "test", "-c", "-vet=off", "-mod=mod", "-modfile", modfile,
		"-ldflags", "-s -w -X "+tools+"/pkg/version.Version="+strings.TrimPrefix(version, "v"), "-o", program, tools+"/cmd/critest")
	return program, version, err
}

// replace copies the suite's source into dir, with our digest, and writes a go.mod that
// has the copy in the place of the original.
func replace(dir, source, digest string) (modfile string, err error) {
	copied := filepath.Join(dir, "cri-tools")
	if err := os.RemoveAll(copied); err != nil {
		return "", err
	}
	if err := os.CopyFS(copied, os.DirFS(source)); err != nil {
		return "", err
	}
	file := filepath.Join(copied, "pkg/validate/consts.go")
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	m := pulledByDigest.FindSubmatch(text)
	if m == nil {
		return "", errors.New(file + " names no image by a digest")
	}
	mod, err := os.ReadFile(filepath.Join(module, "go.mod"))
	if err != nil {
		return "", err
	}
	sum, err := os.ReadFile(filepath.Join(module, "go.sum"))
	if err != nil {
		return "", err
	}
	modfile = filepath.Join(dir, "go.mod")
	return modfile, errors.Join(
		os.WriteFile(file, bytes.Replace(text, m[1], []byte(digest), 1), 0o644),
		os.WriteFile(modfile, fmt.Appendf(mod, "\nreplace %s => %s\n", tools, copied), 0o644),
		os.WriteFile(filepath.Join(dir, "go.sum"), sum, 0o644))
}

// run calls the go command in this module.
func run(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = module
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	var out, problem bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problem
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("go %s: %w\n%s", args[0], err, problem.String())
	}
	return out.String(), nil
}
