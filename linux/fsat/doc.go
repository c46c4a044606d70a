// Package fsat has the file system calls that work relative to an open
// directory. They are what unpacking somebody else's archive needs: paths are
// resolved by the kernel inside a root (openat2 with RESOLVE_IN_ROOT), so that
// neither ".." nor a symbolic link leads out of it, and the last component is
// never followed.
//
// os.Root is the standard library's answer to the same question; it refuses
// absolute links, which images are full of, and has no devices, owners of links
// and extended attributes.
package fsat
