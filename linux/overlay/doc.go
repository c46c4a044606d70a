// Package overlay mounts overlayfs, with any number of lower directories, and
// says why it cannot when it cannot.
//
// The classic mount call takes its options in one page of memory, which a deep
// image fills. Mount therefore has three forms and takes the first that fits:
// plain paths in one page; one fsconfig call a layer (Linux 6.7); paths by file
// descriptor (/proc/self/fd/N), which are short.
package overlay
