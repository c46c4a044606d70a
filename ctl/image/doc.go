// Package image is the verb "peri image": ls, pull, rm and inspect over the CRI
// of any runtime, import and export over the embedded runtime's own socket.
//
//	peri image pull nginx ─ gRPC ─► /run/periplus/cri.sock
//	peri image import x.tar ─ HTTP ─► /run/periplus/images.sock
//
// Names are checked before anything is sent. Add a sub-command as another file
// with a function that New lists.
package image
