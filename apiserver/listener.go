package apiserver

import (
	"bytes"
	"log"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/periplus/periplus/apiserver/measure"
)

const (
	// bodyGrace is how much longer than a request its body may take to arrive.
	bodyGrace = 10 * time.Second
	// answerGrace bounds requests with their answers: who does not read loses the connection.
	answerGrace = 30 * time.Second
)

// listener returns the HTTP server of requests from outside. What a connection may
// keep is bounded: its header, the streams on it, and what of their bodies has
// arrived and was not read.
func (s *Server) listener() *http.Server {
	return &http.Server{
		Handler:           s.handler,
		ReadHeaderTimeout: 32 * time.Second,
		ReadTimeout:       s.config.RequestTimeout + bodyGrace,
		WriteTimeout:      s.config.RequestTimeout + answerGrace,
		IdleTimeout:       90 * time.Second,
		MaxHeaderBytes:    1 << 20,
		ErrorLog:          log.New(handshakes{s.measure}, "", 0), // failed handshakes of scanners and probes: only counted
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams:          250,
			MaxReadFrameSize:              64 << 10,
			MaxReceiveBufferPerStream:     256 << 10,
			MaxReceiveBufferPerConnection: 1 << 20,
			WriteByteTimeout:              s.config.RequestTimeout + answerGrace,
		},
		TLSConfig: s.tlsConfig(),
	}
}

// handshakes takes what net/http has to say about connections.
type handshakes struct{ metrics *measure.Metrics }

// Write implements io.Writer.
func (h handshakes) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte("TLS handshake error")) {
		h.metrics.Handshake()
	}
	return len(line), nil
}

// unbounded lifts the limits of time from a stream's connection. Streams have limits
// of their own: watches end with the first event that nobody reads.
func unbounded(w http.ResponseWriter) {
	c := http.NewResponseController(w)
	// Requests inside the process have no connection.
	_ = c.SetReadDeadline(time.Time{})
	_ = c.SetWriteDeadline(time.Time{})
}

// timeoutOf is how long a request may take: the server's time, or less if its client
// says so.
func (s *Server) timeoutOf(r *http.Request) (time.Duration, error) {
	if r.URL.RawQuery == "" {
		return s.config.RequestTimeout, nil
	}
	value := r.URL.Query().Get("timeout")
	if value == "" {
		return s.config.RequestTimeout, nil
	}
	d, err := time.ParseDuration(value)
	if err != nil {
		return 0, apierrors.NewBadRequest("invalid timeout specified in the request URL - " + err.Error())
	}
	if d <= 0 || d > s.config.RequestTimeout {
		d = s.config.RequestTimeout
	}
	return d, nil
}
