package oci

import (
	"strings"

	imagespec "github.com/opencontainers/image-spec/specs-go/v1"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

const defaultPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// command merges what the pod says with what the image says: args alone replace
// the image's command, a command replaces both.
func command(c *runtimeapi.ContainerConfig, img imagespec.ImageConfig) ([]string, error) {
	cmd, args := c.GetCommand(), c.GetArgs()
	if len(cmd) == 0 {
		cmd = img.Entrypoint
		if len(args) == 0 {
			args = img.Cmd
		}
	}
	argv := append(append(make([]string, 0, len(cmd)+len(args)), cmd...), args...)
	if len(argv) == 0 {
		return nil, ErrNoCommand
	}
	return argv, nil
}

// environment is PATH, TERM and HOSTNAME, then the image's, then the pod's; the
// last value of a name counts.
func environment(in Input, user specs.User) []string {
	env := []string{defaultPath}
	if in.Config.GetTty() {
		env = append(env, "TERM=xterm")
	}
	if h := in.Sandbox.GetHostname(); h != "" {
		env = append(env, "HOSTNAME="+h)
	}
	env = append(env, in.Image.Env...)
	for _, e := range in.Config.GetEnvs() {
		env = append(env, e.GetKey()+"="+string(e.GetValue()))
	}
	env = dedupe(env)
	for _, e := range env {
		if strings.HasPrefix(e, "HOME=") {
			return env
		}
	}
	if home := homeOf(in.Rootfs, user.UID); home != "" {
		env = append(env, "HOME="+home)
	}
	return env
}

// dedupe keeps the place of the first and the value of the last entry of each name.
func dedupe(env []string) []string {
	at := make(map[string]int, len(env))
	out := env[:0:0]
	for _, e := range env {
		name, _, _ := strings.Cut(e, "=")
		if i, ok := at[name]; ok {
			out[i] = e
			continue
		}
		at[name] = len(out)
		out = append(out, e)
	}
	return out
}

func workingDir(c *runtimeapi.ContainerConfig, img imagespec.ImageConfig) string {
	switch {
	case c.GetWorkingDir() != "":
		return c.GetWorkingDir()
	case img.WorkingDir != "":
		return img.WorkingDir
	}
	return "/"
}

// ExecProcess is the process of an exec in a container: that of the container
// with other arguments.
func ExecProcess(p *specs.Process, args []string, tty bool) *specs.Process {
	e := *p
	e.Args, e.Terminal = args, tty
	if tty {
		e.Env = dedupe(append(append([]string{}, p.Env...), "TERM=xterm"))
	}
	return &e
}
