package snapshot

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/periplus/periplus/linux/fsat"
)

// maxLinks bounds the links followed on the way to one directory, as the kernel does.
const maxLinks = 40

// dir opens the directory p of the layer, and makes it if it is missing. The
// directory stays open until the next call.
func (x *unpacker) dir(p string) (*fsat.Dir, error) {
	if p == "." {
		return x.root, nil
	}
	if x.cur != nil && x.curPath == p {
		return x.cur, nil
	}
	d, err := x.root.Resolve(p)
	if fsat.NotExist(err) || fsat.NotDir(err) {
		links := 0
		if p, err = x.makeDirs(p, &links); err != nil {
			return nil, err
		}
		d, err = x.root.Resolve(p)
	}
	if err != nil {
		return nil, err
	}
	x.forget()
	x.cur, x.curPath = d, p
	return d, nil
}

// forget closes the directory of the last entry. Whoever removes or replaces
// something calls it, because the directory may be gone or elsewhere now.
func (x *unpacker) forget() {
	if x.cur != nil {
		x.cur.Close()
		x.cur, x.curPath = nil, ""
	}
}

// makeDirs makes the directories of p that are missing and returns where they
// are: a link on the way whose target is missing too is followed inside the root.
func (x *unpacker) makeDirs(p string, links *int) (string, error) {
	done := "."
	rest := strings.Split(p, "/")
	for len(rest) > 0 {
		name := rest[0]
		parent, err := x.root.Resolve(done)
		if err != nil {
			return "", err
		}
		created, target, err := x.step(parent, name)
		if err == nil && created {
			err = parent.Chmod(name, 0o755) // in spite of the umask
		}
		if err == nil && created {
			var real string
			if real, err = x.real(parent); err == nil {
				x.implicit[path.Join(real, name)] = true
				x.usage.Inodes++
			}
		}
		parent.Close()
		if err != nil {
			return "", err
		}
		rest = rest[1:]
		if target == "" {
			done = path.Join(done, name)
			continue
		}
		if *links++; *links > maxLinks {
			return "", fmt.Errorf("%w: too many symbolic links", ErrUnsafe)
		}
		if !path.IsAbs(target) {
			target = path.Join("/", done, target)
		}
		if done, err = x.makeDirs(strings.TrimPrefix(path.Clean(target), "/"), links); err != nil {
			return "", err
		}
	}
	return done, nil
}

// step looks at one component: it is a directory, becomes one (created), or is a
// symbolic link (target).
func (x *unpacker) step(parent *fsat.Dir, name string) (created bool, target string, err error) {
	if name == "" || name == "." {
		return false, "", nil
	}
	st, err := parent.Lstat(name)
	switch {
	case fsat.NotExist(err), err == nil && st.IsWhiteout() && x.whiteouts == Convert:
		created, err = x.mkdir(parent, name)
		return created, "", err
	case err != nil:
		return false, "", err
	case st.IsDir():
		return false, "", nil
	case st.IsLink():
		target, err = parent.Readlink(name)
		return false, target, err
	}
	return false, "", fmt.Errorf("%s is not a directory", name)
}

// mkdir makes a directory unless there is one. In the place of a whiteout of the
// same layer it becomes opaque: what it replaces must not shine through.
func (x *unpacker) mkdir(dir *fsat.Dir, base string) (created bool, err error) {
	err = dir.Mkdir(base)
	if err == nil || !errors.Is(err, fs.ErrExist) {
		return err == nil, err
	}
	st, err := dir.Lstat(base)
	if err != nil || st.IsDir() {
		return false, err
	}
	if err := dir.RemoveAll(base); err != nil {
		return false, err
	}
	x.forgetUnless(dir)
	if err := dir.Mkdir(base); err != nil {
		return false, err
	}
	if st.IsWhiteout() && x.whiteouts == Convert {
		return true, dir.Setxattr(base, opaqueAttr, "y")
	}
	return true, nil
}

// replacing calls mk and, if the name is taken, removes what is there and calls it again.
func (x *unpacker) replacing(dir *fsat.Dir, base string, mk func() error) error {
	err := mk()
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := dir.RemoveAll(base); err != nil {
		return err
	}
	x.forgetUnless(dir)
	return mk()
}

// forgetUnless forgets the last directory if it is another one than dir, which
// is in use and, being the parent of what was removed, still right.
func (x *unpacker) forgetUnless(dir *fsat.Dir) {
	if x.cur != dir {
		x.forget()
	}
}

// real is where a directory is, relative to the root, after all links.
func (x *unpacker) real(dir *fsat.Dir) (string, error) {
	if dir == x.root {
		return ".", nil
	}
	p, err := dir.Path()
	if err != nil {
		return "", err
	}
	rel, ok := strings.CutPrefix(p, x.base)
	if !ok {
		return "", fmt.Errorf("%w: %s is outside the root", ErrUnsafe, p)
	}
	if rel = strings.TrimPrefix(rel, "/"); rel == "" {
		return ".", nil
	}
	return rel, nil
}

// whiteout handles one whiteout entry (OCI image-spec, "Whiteouts").
func (x *unpacker) whiteout(dir *fsat.Dir, name, base string) error {
	if base == opaqueMarker {
		return x.opaque(dir, path.Dir(name))
	}
	if strings.HasPrefix(base, whiteoutMeta) {
		return nil // aufs's own bookkeeping
	}
	hidden := strings.TrimPrefix(base, whiteoutPrefix)
	if hidden == "" || hidden == "." || hidden == ".." {
		return fmt.Errorf("%w: whiteout of %q", ErrUnsafe, hidden)
	}
	if x.whiteouts == Apply {
		return x.hide(dir, path.Join(path.Dir(name), hidden), hidden)
	}
	st, err := dir.Lstat(hidden)
	switch {
	case fsat.NotExist(err):
		x.usage.Inodes++
		return dir.Whiteout(hidden)
	case err != nil:
		return err
	case st.IsDir(): // this layer has the name as well: only what is below is hidden
		return dir.Setxattr(hidden, opaqueAttr, "y")
	}
	return nil
}

// hide removes a name that lower layers have, or what they have below it if this
// layer has it as well.
func (x *unpacker) hide(dir *fsat.Dir, name, base string) error {
	defer x.forgetUnless(dir)
	if !x.seen[name] {
		return dir.RemoveAll(base)
	}
	if st, err := dir.Lstat(base); err != nil || !st.IsDir() {
		return err
	}
	return x.hideChild(dir, name, base)
}

// opaque hides all that lower layers have in a directory.
func (x *unpacker) opaque(dir *fsat.Dir, name string) error {
	if x.whiteouts == Convert {
		return dir.Setxattr(".", opaqueAttr, "y")
	}
	err := x.hideBelow(dir, name)
	x.forgetUnless(dir)
	return err
}

// hideBelow removes from a directory what this layer did not bring. It closes no
// directory but its own: the caller may be using the last one.
func (x *unpacker) hideBelow(dir *fsat.Dir, name string) error {
	names, err := dir.Names()
	if err != nil {
		return err
	}
	for _, n := range names {
		p := path.Join(name, n)
		if !x.seen[p] {
			err = dir.RemoveAll(n)
		} else if st, serr := dir.Lstat(n); serr != nil {
			err = serr
		} else if st.IsDir() {
			err = x.hideChild(dir, p, n)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (x *unpacker) hideChild(dir *fsat.Dir, name, base string) error {
	sub, err := dir.Child(base)
	if err != nil {
		return err
	}
	defer sub.Close()
	return x.hideBelow(sub, name)
}

// finishTimes sets the times of directories, which every file in them has changed.
func (x *unpacker) finishTimes() error {
	for _, t := range x.times {
		atime := t.atime
		if atime.IsZero() {
			atime = t.mtime
		}
		dirPath, base := path.Split(t.path)
		dir, err := x.root.Resolve(path.Join(".", dirPath))
		if fsat.NotExist(err) || fsat.NotDir(err) {
			continue // replaced later in the archive
		}
		if err != nil {
			return err
		}
		err = dir.Chtimes(base, atime, t.mtime)
		dir.Close()
		if err != nil && !fsat.NotExist(err) {
			return err
		}
	}
	return nil
}
