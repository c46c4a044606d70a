package audit

import (
	"bufio"
	"net"
	"net/http"
)

// Writer returns w, watched for the beginning of the answer.
func (r *Record) Writer(w http.ResponseWriter) http.ResponseWriter { return &writer{w, r} }

type writer struct {
	http.ResponseWriter
	record *Record
}

var (
	_ http.Flusher  = (*writer)(nil)
	_ http.Hijacker = (*writer)(nil)
)

// Unwrap is for http.ResponseController.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *writer) WriteHeader(code int) {
	if code >= http.StatusOK || code == http.StatusSwitchingProtocols {
		w.record.begun(code)
	}
	w.ResponseWriter.WriteHeader(code)
}

func (w *writer) Write(p []byte) (int, error) {
	w.record.begun(http.StatusOK)
	return w.ResponseWriter.Write(p)
}

func (w *writer) Flush() {
	if f, ok := w.ResponseWriter.(http.Flusher); ok {
		f.Flush()
	}
}

func (w *writer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	w.record.begun(http.StatusSwitchingProtocols)
	return http.NewResponseController(w.ResponseWriter).Hijack()
}
