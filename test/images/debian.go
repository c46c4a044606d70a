package images

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// A Debian is an image made of Debian packages.
type Debian struct {
	Packages []string
	// Without names packages of the dependency closure that only installation or
	// administration needs.
	Without []string
	// Files go on top of what the packages hold.
	Files  []File
	Config v1.Config
}

// installers are packages that a running program does not need: maintainer
// scripts do.
var installers = []string{
	"adduser", "debconf", "dpkg", "tar", "passwd", "perl", "perl-base", "perl-modules-5.36", "libperl5.36", "usrmerge",
	"init-system-helpers", "sysvinit-utils", "lsb-base", "iproute2", "libpam-modules", "libpam-modules-bin", "libpam0g",
	"libpam-runtime", "libcap2-bin", "libnumber-compare-perl", "libtext-glob-perl", "libfile-find-rule-perl", "ucf", "sensible-utils",
}

// unused holds what a server in a container never reads.
var unused = []string{"usr/share/doc/", "usr/share/man/", "usr/share/locale/", "usr/share/lintian/", "usr/share/bug/", "etc/init.d/", "usr/lib/systemd/"}

// Image downloads the packages, unless they are in the cache, and unpacks them
// into one layer. Nothing of this machine's own installation is touched.
func (d Debian) Image(ctx context.Context) (v1.Image, error) {
	debs, err := d.download(ctx)
	if err != nil {
		return nil, fmt.Errorf("image of %s: %w", strings.Join(d.Packages, " "), err)
	}
	l := newLayer()
	for _, dir := range []string{"bin", "sbin", "lib", "lib64"} {
		l.add(File{Path: dir, Mode: os.ModeSymlink | 0o777, Data: []byte("usr/" + dir)})
		l.add(File{Path: "usr/" + dir, Mode: os.ModeDir | 0o755})
	}
	for _, deb := range debs {
		if err := unpack(ctx, l, deb); err != nil {
			return nil, fmt.Errorf("unpack %s: %w", filepath.Base(deb), err)
		}
	}
	for _, f := range append(skeleton(), d.Files...) {
		l.add(f)
	}
	return l.image(d.Config)
}

func unpack(ctx context.Context, l *layer, deb string) error {
	cmd := exec.CommandContext(ctx, "dpkg-deb", "--fsys-tarfile", deb)
	var problem bytes.Buffer
	cmd.Stderr = &problem
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	err = l.addTar(out, func(name string) bool {
		return !slices.ContainsFunc(unused, func(prefix string) bool { return strings.HasPrefix(name+"/", prefix) })
	})
	// What follows the archive's end mark is read too, or dpkg-deb dies of SIGPIPE.
	_, drain := io.Copy(io.Discard, out)
	if err := errors.Join(err, drain, cmd.Wait()); err != nil {
		return fmt.Errorf("%w: %s", err, problem.String())
	}
	return nil
}

// download returns the files of the packages and of all that they depend on. apt
// solves for an empty machine, so the result does not depend on what is installed.
func (d Debian) download(ctx context.Context) ([]string, error) {
	names, err := d.closure(ctx)
	if err != nil {
		return nil, err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(cache, "periplus", "debian")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	files, missing := present(dir, names)
	if len(missing) == 0 {
		return files, nil
	}
	// Into a directory of our own and then renamed: others may fill the cache as well.
	fetch, err := os.MkdirTemp(dir, ".fetch-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(fetch)
	var args []string
	for _, p := range missing {
		args = append(args, p.name+"="+p.version)
	}
	if _, err := apt(ctx, fetch, append([]string{"download"}, args...)...); err != nil {
		return nil, err
	}
	got, err := filepath.Glob(filepath.Join(fetch, "*.deb"))
	if err != nil {
		return nil, err
	}
	for _, f := range got {
		if err := os.Rename(f, filepath.Join(dir, filepath.Base(f))); err != nil {
			return nil, err
		}
	}
	files, missing = present(dir, names)
	if len(missing) > 0 {
		return nil, fmt.Errorf("apt-get did not download %v", missing)
	}
	return files, nil
}

// A pkg is one package in one version.
type pkg struct{ name, version string }

// closure lists the packages in the order in which apt would install them.
func (d Debian) closure(ctx context.Context) ([]pkg, error) {
	install := append([]string{"--simulate", "--no-install-recommends", "install"}, d.Packages...)
	out, err := apt(ctx, "", install...)
	if err != nil {
		return nil, err
	}
	var names []pkg
	for line := range strings.Lines(out) {
		// Inst nginx (1.22.1-9+deb12u11 Debian-Security:12/oldstable-security [amd64])
		f := strings.Fields(line)
		if len(f) < 3 || f[0] != "Inst" || slices.Contains(installers, f[1]) || slices.Contains(d.Without, f[1]) {
			continue
		}
		names = append(names, pkg{f[1], strings.TrimPrefix(f[2], "(")})
	}
	if len(names) == 0 {
		return nil, errors.New("apt-get would install nothing: is the list of packages there (apt-get update)?")
	}
	return names, nil
}

func present(dir string, names []pkg) (files []string, missing []pkg) {
	for _, p := range names {
		version := strings.ReplaceAll(p.version, ":", "%3a")
		match, _ := filepath.Glob(filepath.Join(dir, p.name+"_"+version+"_*.deb")) // the pattern is well-formed
		if len(match) == 0 {
			missing = append(missing, p)
			continue
		}
		files = append(files, match[0])
	}
	return files, missing
}

// apt runs apt-get as on a machine with no package installed. When that fails
// the list of packages may be missing or old: it is fetched and apt-get run once more.
func apt(ctx context.Context, dir string, args ...string) (string, error) {
	empty := []string{"-q", "-o", "Dir::State::status=/dev/null", "-o", "Debug::NoLocking=1", "-o", "APT::Sandbox::User=root"}
	out, err := run(ctx, dir, "apt-get", append(empty, args...)...)
	if err == nil {
		return out, nil
	}
	if _, updateErr := run(ctx, "", "apt-get", "-q", "update"); updateErr != nil {
		return "", errors.Join(err, updateErr)
	}
	return run(ctx, dir, "apt-get", append(empty, args...)...)
}

func run(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "LC_ALL=C", "DEBIAN_FRONTEND=noninteractive")
	var out, problem bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problem
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(problem.String()))
	}
	return out.String(), nil
}
