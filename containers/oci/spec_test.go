package oci_test

import (
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	imagespec "github.com/opencontainers/image-spec/specs-go/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/periplus/periplus/containers/oci"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func root(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "etc"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"passwd": "root:x:0:0:root:/root:/bin/sh\n# comment\nweb:x:101:102:Web:/srv:/bin/false\nbroken:x:y\n",
		"group":  "root:x:0:\nweb:x:102:\nlogs:x:103:other,web\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, "etc", name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func input(t *testing.T) oci.Input {
	return oci.Input{
		ID: "c1", Rootfs: root(t), CgroupsPath: "/kubepods/pod1/c1",
		Host: oci.Host{Capabilities: []string{"CAP_CHOWN", "CAP_KILL", "CAP_NET_ADMIN", "CAP_SYS_ADMIN", "CAP_NET_BIND_SERVICE"},
			OOMScoreFloor: 0, Swap: true, Seccomp: true},
		Sandbox: &runtimeapi.PodSandboxConfig{
			Metadata: &runtimeapi.PodSandboxMetadata{Name: "web", Namespace: "default", Uid: "1234"}, Hostname: "web",
		},
		Namespaces: oci.Namespaces{Net: "/run/p/netns/s1", IPC: "/run/p/ipcns/s1", UTS: "/run/p/utsns/s1"},
		Files:      oci.Files{Hostname: "/s/hostname", Hosts: "/s/hosts", ResolvConf: "/s/resolv.conf", Shm: "/s/shm"},
		Image: imagespec.ImageConfig{
			User: "web", Env: []string{"PATH=/usr/bin", "A=image"}, Entrypoint: []string{"/entry"}, Cmd: []string{"default"}, WorkingDir: "/srv",
		},
		Config: &runtimeapi.ContainerConfig{
			Metadata: &runtimeapi.ContainerMetadata{Name: "app"},
			Envs:     []*runtimeapi.KeyValue{{Key: "A", Value: []byte("pod")}, {Key: "B", Value: []byte("x=y")}},
			Linux: &runtimeapi.LinuxContainerConfig{
				Resources: &runtimeapi.LinuxContainerResources{CpuShares: 102, CpuQuota: 20000, CpuPeriod: 100000, MemoryLimitInBytes: 64 << 20, OomScoreAdj: -997},
				SecurityContext: &runtimeapi.LinuxContainerSecurityContext{
					Capabilities: &runtimeapi.Capability{AddCapabilities: []string{"net_admin"}, DropCapabilities: []string{"KILL"}},
					MaskedPaths:  []string{"/proc/kcore"}, ReadonlyPaths: []string{"/proc/sys"}, ReadonlyRootfs: true, NoNewPrivs: true,
				},
			},
		},
	}
}

// TestGolden compares whole configurations with those on record.
func TestGolden(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*oci.Input){
		"web": func(*oci.Input) {},
		"privileged": func(in *oci.Input) {
			in.Config.Linux.SecurityContext.Privileged = true
			in.Namespaces = oci.Namespaces{HostNet: true, HostUTS: true, HostIPC: true, HostPID: true}
		},
		"seccomp": func(in *oci.Input) {
			in.Config.Linux.SecurityContext.Seccomp = &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_RuntimeDefault}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := input(t)
			change(&in)
			res, err := oci.Spec(in)
			if err != nil {
				t.Fatal(err)
			}
			if !res.OOMClamped {
				t.Error("a score below the floor is not reported")
			}
			if res.Spec.Linux.Devices != nil {
				res.Spec.Linux.Devices = nil // the machine's
			}
			b, err := json.MarshalIndent(res.Spec, "", " ")
			if err != nil {
				t.Fatal(err)
			}
			got := strings.ReplaceAll(string(b), in.Rootfs, "ROOTFS") + "\n"
			path := filepath.Join("testdata", name+".json")
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("%s differs (go test -update rewrites it):\n%s", path, got)
			}
		})
	}
}

func TestCommand(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ entry, cmd, podCommand, podArgs, want string }{
		{"/e", "c", "", "", "/e c"},
		{"/e", "c", "", "a", "/e a"},
		{"/e", "c", "/p", "", "/p"},
		{"/e", "c", "/p", "a b", "/p a b"},
		{"", "c", "", "", "c"},
		{"", "", "", "", ""},
	} {
		in := input(t)
		in.Image.Entrypoint, in.Image.Cmd = strings.Fields(c.entry), strings.Fields(c.cmd)
		in.Config.Command, in.Config.Args = strings.Fields(c.podCommand), strings.Fields(c.podArgs)
		res, err := oci.Spec(in)
		if c.want == "" {
			if !errors.Is(err, oci.ErrNoCommand) {
				t.Errorf("%+v: %v, want ErrNoCommand", c, err)
			}
			continue
		}
		if err != nil || strings.Join(res.Spec.Process.Args, " ") != c.want {
			t.Errorf("%+v: %v, %v", c, res.Spec, err)
		}
	}
}

func TestUser(t *testing.T) {
	t.Parallel()
	id := func(v int64) *runtimeapi.Int64Value { return &runtimeapi.Int64Value{Value: v} }
	type sc = runtimeapi.LinuxContainerSecurityContext
	for name, c := range map[string]struct {
		image    string
		sc       *sc
		uid, gid uint32
		groups   []uint32
		err      string
	}{
		"nothing":              {image: "", sc: &sc{}, groups: []uint32{0}},
		"image name":           {image: "web", sc: &sc{}, uid: 101, gid: 102, groups: []uint32{102, 103}},
		"image name and group": {image: "web:logs", sc: &sc{}, uid: 101, gid: 103, groups: []uint32{103}},
		"unknown number":       {image: "5000", sc: &sc{}, uid: 5000, groups: []uint32{0}},
		"unknown name":         {image: "nobody", sc: &sc{}, err: "unable to find user nobody"},
		"pod over image":       {image: "web", sc: &sc{RunAsUser: id(0)}, groups: []uint32{0}},
		"pod uid and gid":      {sc: &sc{RunAsUser: id(101), RunAsGroup: id(9), SupplementalGroups: []int64{8}}, uid: 101, gid: 9, groups: []uint32{8, 9, 103}},
		"strict":               {sc: &sc{RunAsUser: id(101), SupplementalGroupsPolicy: runtimeapi.SupplementalGroupsPolicy_Strict}, uid: 101, gid: 102, groups: []uint32{102}},
		"group alone":          {sc: &sc{RunAsGroup: id(9)}, err: "user group is specified without user"},
	} {
		in := input(t)
		in.Image.User, in.Config.Linux.SecurityContext = c.image, c.sc
		res, err := oci.Spec(in)
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: %v, want %q", name, err, c.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		u := res.Spec.Process.User
		if u.UID != c.uid || u.GID != c.gid || !slices.Equal(u.AdditionalGids, c.groups) {
			t.Errorf("%s: %+v, want %d, %d, %v", name, u, c.uid, c.gid, c.groups)
		}
	}
}
