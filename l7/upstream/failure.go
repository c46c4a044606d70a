package upstream

import "fmt"

// A Kind says how a try failed.
type Kind int

// Kinds of failures.
const (
	// NoEndpoint: the cluster has none. Nothing was sent.
	NoEndpoint Kind = iota
	// Overflow: the circuit breaker is open. Nothing was sent.
	Overflow
	// Connect: no connection could be made. Nothing was sent.
	Connect
	// Stale: a connection that was used before broke before anything came back. The
	// other side may have closed it before it saw the request.
	Stale
	// Refused: HTTP/2 said that the request was not processed.
	Refused
	// Reset: the connection broke before a response began.
	Reset
	// Timeout: the deadline has passed.
	Timeout
	// Protocol: what came back is no HTTP.
	Protocol
	// Client: the body of the request could not be read, or the client has gone.
	Client
)

// A Failure is why there is no response.
type Failure struct {
	Kind Kind
	Err  error
}

// Error implements error.
func (f *Failure) Error() string { return fmt.Sprintf("%s: %v", f.Kind, f.Err) }

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Err }

// String is a short text for observers, in Envoy's words.
func (k Kind) String() string {
	switch k {
	case NoEndpoint:
		return "no_healthy_upstream"
	case Overflow:
		return "overflow"
	case Connect:
		return "connection_failure"
	case Stale, Reset:
		return "connection_termination"
	case Refused:
		return "refused_stream"
	case Timeout:
		return "response_timeout"
	case Protocol:
		return "protocol_error"
	default:
		return "downstream_remote_disconnect"
	}
}
