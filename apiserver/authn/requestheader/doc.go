// Package requestheader believes proxies that prove themselves by a certificate of the
// front proxies' authority: their headers name the user (X-Remote-User, X-Remote-Group …).
// The same headers from anybody else mean nothing.
package requestheader
