package apiserver

import (
	"io"
	"log"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	// requestTimeout bounds requests that are not streams.
	requestTimeout = 60 * time.Second
	// bodyTimeout is in what time their bodies must arrive.
	bodyTimeout = requestTimeout + 10*time.Second
	// answerTimeout bounds them with their answers: who does not read loses the connection.
	answerTimeout = requestTimeout + 30*time.Second
)

// listener returns the HTTP server of requests from outside. What a connection may
// keep is bounded: its header, the streams on it, and what of their bodies has
// arrived and was not read.
func (s *Server) listener() *http.Server {
	return &http.Server{
		Handler:           s.handler,
		ReadHeaderTimeout: 32 * time.Second,
		ReadTimeout:       bodyTimeout,
		WriteTimeout:      answerTimeout,
		IdleTimeout:       90 * time.Second,
		MaxHeaderBytes:    1 << 20,
		ErrorLog:          log.New(io.Discard, "", 0), // failed handshakes of scanners and probes
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams:          250,
			MaxReadFrameSize:              64 << 10,
			MaxReceiveBufferPerStream:     256 << 10,
			MaxReceiveBufferPerConnection: 1 << 20,
			WriteByteTimeout:              answerTimeout,
		},
		TLSConfig: s.tlsConfig(),
	}
}

// unbounded lifts the limits of time from a stream's connection. Streams have limits
// of their own: watches end with the first event that nobody reads.
func unbounded(w http.ResponseWriter) {
	c := http.NewResponseController(w)
	// Requests inside the process have no connection.
	_ = c.SetReadDeadline(time.Time{})
	_ = c.SetWriteDeadline(time.Time{})
}

// timeoutOf is how long a request may take: requestTimeout, or less if its client
// says so.
func timeoutOf(r *http.Request) (time.Duration, error) {
	if r.URL.RawQuery == "" {
		return requestTimeout, nil
	}
	value := r.URL.Query().Get("timeout")
	if value == "" {
		return requestTimeout, nil
	}
	d, err := time.ParseDuration(value)
	if err != nil {
		return 0, apierrors.NewBadRequest("invalid timeout specified in the request URL - " + err.Error())
	}
	if d <= 0 || d > requestTimeout {
		d = requestTimeout
	}
	return d, nil
}
