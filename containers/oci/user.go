package oci

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/periplus/periplus/linux/namespace"
)

// maxDatabase bounds what is read of an image's passwd and group files.
const maxDatabase = 4 << 20

// passwd is one line of /etc/passwd.
type passwd struct {
	name     string
	uid, gid uint32
	home     string
}

// resolveUser finds who a container runs as. The pod's security context comes
// before the image; names are looked up in the image's own /etc.
func resolveUser(rootfs, imageUser string, sc *runtimeapi.LinuxContainerSecurityContext) (specs.User, error) {
	var u specs.User
	spec := imageUser
	switch {
	case sc.GetRunAsUser() != nil:
		spec = strconv.FormatInt(sc.GetRunAsUser().GetValue(), 10)
		if sc.GetRunAsGroup() != nil {
			spec += ":" + strconv.FormatInt(sc.GetRunAsGroup().GetValue(), 10)
		}
	case sc.GetRunAsUsername() != "":
		spec = sc.GetRunAsUsername()
		if sc.GetRunAsGroup() != nil {
			spec += ":" + strconv.FormatInt(sc.GetRunAsGroup().GetValue(), 10)
		}
	case sc.GetRunAsGroup() != nil:
		return u, errors.New("user group is specified without user")
	}
	name, group, _ := strings.Cut(spec, ":")
	entry, err := lookupUser(rootfs, name)
	if err != nil {
		return u, err
	}
	u.UID, u.GID = entry.uid, entry.gid
	if group != "" {
		if u.GID, err = lookupGroup(rootfs, group); err != nil {
			return u, err
		}
	}
	var gids []uint32
	// As Docker does: the groups that the image lists the user in, unless a
	// group was named, and with policy Strict only what the pod says.
	if sc.GetSupplementalGroupsPolicy() == runtimeapi.SupplementalGroupsPolicy_Merge && entry.name != "" {
		gids = groupsOf(rootfs, entry.name)
	}
	for _, g := range sc.GetSupplementalGroups() {
		if g < 0 || g > 1<<32-2 {
			return u, fmt.Errorf("supplemental group %d is out of range", g)
		}
		gids = append(gids, uint32(g))
	}
	gids = append(gids, u.GID)
	slices.Sort(gids)
	u.AdditionalGids = slices.Compact(gids)
	return u, nil
}

// lookupUser understands a name or a number. A number need not be in the
// database, and has group 0 then.
func lookupUser(rootfs, name string) (passwd, error) {
	if name == "" {
		name = "0"
	}
	id, numeric := parseID(name)
	var found *passwd
	err := scan(rootfs, "/etc/passwd", func(f []string) bool {
		p, ok := parsePasswd(f)
		if ok && (f[0] == name || numeric && p.uid == id) {
			found = &p
		}
		return found != nil
	})
	switch {
	case found != nil:
		return *found, nil
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return passwd{}, fmt.Errorf("look up user %q: %w", name, err)
	case numeric:
		return passwd{uid: id}, nil
	}
	return passwd{}, fmt.Errorf("unable to find user %s: no matching entries in passwd file", name)
}

func lookupGroup(rootfs, name string) (uint32, error) {
	if id, ok := parseID(name); ok {
		return id, nil
	}
	var gid uint32
	found := false
	err := scan(rootfs, "/etc/group", func(f []string) bool {
		if len(f) >= 3 && f[0] == name {
			gid, found = parseID(f[2])
		}
		return found
	})
	if found {
		return gid, nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return 0, fmt.Errorf("look up group %q: %w", name, err)
	}
	return 0, fmt.Errorf("unable to find group %s: no matching entries in group file", name)
}

// groupsOf returns the groups that list a user as member.
func groupsOf(rootfs, user string) []uint32 {
	var gids []uint32
	_ = scan(rootfs, "/etc/group", func(f []string) bool {
		if len(f) >= 4 && slices.Contains(strings.Split(f[3], ","), user) {
			if gid, ok := parseID(f[2]); ok {
				gids = append(gids, gid)
			}
		}
		return false
	})
	return gids
}

func homeOf(rootfs string, uid uint32) string {
	home := "/"
	if uid == 0 {
		home = "/root"
	}
	_ = scan(rootfs, "/etc/passwd", func(f []string) bool {
		p, ok := parsePasswd(f)
		if !ok || p.uid != uid {
			return false
		}
		if p.home != "" {
			home = p.home
		}
		return true
	})
	return home
}

func parsePasswd(f []string) (p passwd, ok bool) {
	if len(f) < 6 {
		return p, false
	}
	uid, ok1 := parseID(f[2])
	gid, ok2 := parseID(f[3])
	return passwd{f[0], uid, gid, f[5]}, ok1 && ok2
}

func parseID(s string) (uint32, bool) {
	n, err := strconv.ParseUint(s, 10, 32)
	return uint32(n), err == nil && n < 1<<32-1
}

// scan calls line with the fields of each line until it says true.
func scan(rootfs, path string, line func(fields []string) bool) error {
	f, err := namespace.OpenInRoot(rootfs, path)
	if err != nil {
		return err
	}
	defer f.Close()
	sc := bufio.NewScanner(io.LimitReader(f, maxDatabase))
	for sc.Scan() {
		text := strings.TrimSpace(sc.Text())
		if text == "" || text[0] == '#' {
			continue
		}
		if line(strings.Split(text, ":")) {
			return nil
		}
	}
	return sc.Err()
}
