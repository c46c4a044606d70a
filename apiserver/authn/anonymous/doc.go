// Package anonymous is who presents no credentials: the user system:anonymous, if that
// is allowed, everywhere or for some paths.
package anonymous
