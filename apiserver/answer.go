package apiserver

import (
	"bufio"
	"net"
	"net/http"
)

// An answer is a response writer that knows what was written to it.
type answer struct {
	http.ResponseWriter
	code  int
	bytes int64
}

var (
	_ http.Flusher  = (*answer)(nil)
	_ http.Hijacker = (*answer)(nil)
)

// Unwrap is for http.ResponseController.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(code int) {
	if code >= http.StatusOK || code == http.StatusSwitchingProtocols {
		a.code = code
	}
	a.ResponseWriter.WriteHeader(code)
}

// Write implements http.ResponseWriter.
func (a *answer) Write(p []byte) (int, error) {
	n, err := a.ResponseWriter.Write(p)
	a.bytes += int64(n)
	return n, err
}

// Flush implements http.Flusher.
func (a *answer) Flush() {
	if f, ok := a.ResponseWriter.(http.Flusher); ok {
		f.Flush()
	}
}

// Hijack implements http.Hijacker.
func (a *answer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	a.code = http.StatusSwitchingProtocols
	return http.NewResponseController(a.ResponseWriter).Hijack()
}
