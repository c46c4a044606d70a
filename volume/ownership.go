package volume

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	corev1 "k8s.io/api/core/v1"
)

// What a pod's fsGroup may do with its volumes, beyond what the modes say.
const (
	groupReadWrite = 0o660
	groupReadOnly  = 0o440
	groupExec      = 0o110
)

// SetOwner gives everything in dir to the request's fsGroup: files are readable
// (and writable unless readOnly) for the group, directories have the set-group-ID
// bit, so that new files belong to it too. With the policy OnRootMismatch nothing
// is done when dir itself is right already. No fsGroup: nothing is done.
func (r *Request) SetOwner(dir string, readOnly bool) error {
	if r.FSGroup == nil {
		return nil
	}
	gid := int(*r.FSGroup)
	if r.FSGroupPolicy == corev1.FSGroupChangeOnRootMismatch && rootMatches(dir, gid, readOnly) {
		return nil
	}
	// The root comes last: if this is interrupted, OnRootMismatch starts over.
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		return own(path, d, gid, readOnly)
	})
	if err != nil {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	return own(dir, fs.FileInfoToDirEntry(info), gid, readOnly)
}

func own(path string, d fs.DirEntry, gid int, readOnly bool) error {
	err := os.Lchown(path, -1, gid)
	if errors.Is(err, fs.ErrNotExist) || d.Type()&fs.ModeSymlink != 0 {
		return ignoreAbsent(err) // removed meanwhile; a link has no mode
	}
	if err != nil {
		return err
	}
	info, err := d.Info()
	if err != nil {
		return ignoreAbsent(err)
	}
	return ignoreAbsent(os.Chmod(path, info.Mode()|groupMode(d.IsDir(), readOnly)))
}

func groupMode(dir, readOnly bool) fs.FileMode {
	mode := fs.FileMode(groupReadWrite)
	if readOnly {
		mode = groupReadOnly
	}
	if dir {
		mode |= groupExec | fs.ModeSetgid
	}
	return mode
}

func rootMatches(dir string, gid int, readOnly bool) bool {
	info, err := os.Stat(dir)
	if err != nil {
		return false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	want := groupMode(true, readOnly)
	return ok && int(st.Gid) == gid && info.Mode()&want == want
}

func ignoreAbsent(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// UserOf returns the user that all containers of the pod run as, as far as the
// specification says so; nil if they differ or the images decide.
func UserOf(pod *corev1.Pod) *int64 {
	var common *int64
	first, differ := true, false
	visit := func(sc *corev1.SecurityContext) {
		var user *int64
		if sc != nil && sc.RunAsUser != nil {
			user = sc.RunAsUser
		} else if pod.Spec.SecurityContext != nil {
			user = pod.Spec.SecurityContext.RunAsUser
		}
		switch {
		case user == nil || !first && (common == nil || *common != *user):
			differ = true
		default:
			common = user
		}
		first = false
	}
	for i := range pod.Spec.InitContainers {
		visit(pod.Spec.InitContainers[i].SecurityContext)
	}
	for i := range pod.Spec.Containers {
		visit(pod.Spec.Containers[i].SecurityContext)
	}
	for i := range pod.Spec.EphemeralContainers {
		visit(pod.Spec.EphemeralContainers[i].SecurityContext)
	}
	if differ {
		return nil
	}
	return common
}
