package http1

// An Error says why bytes are no message that may be passed on.
type Error struct {
	// Status is what a client is answered with.
	Status int
	Reason string
}

// Error implements error.
func (e *Error) Error() string { return e.Reason }

func bad(reason string) *Error { return &Error{Status: 400, Reason: reason} }

var (
	errBareLF        = bad("line ends with LF instead of CRLF")
	errBareCR        = bad("CR inside of a line")
	errRequestLine   = bad("malformed request line")
	errStatusLine    = bad("malformed status line")
	errVersion       = &Error{Status: 505, Reason: "HTTP version not supported"}
	errFieldName     = bad("malformed header field name")
	errFieldValue    = bad("control character in a header field value")
	errFold          = bad("folded header line")
	errHost          = bad("exactly one Host header is needed")
	errHostValue     = bad("malformed Host header")
	errLength        = bad("malformed Content-Length")
	errLengths       = bad("Content-Length headers differ")
	errBothFramings  = bad("Content-Length beside Transfer-Encoding")
	errCoding        = &Error{Status: 501, Reason: "transfer coding not supported"}
	errCodingVersion = bad("Transfer-Encoding in HTTP/1.0")
	errChunk         = bad("malformed chunk")
	errTarget        = bad("malformed request target")
)
