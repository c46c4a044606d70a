package http1

import (
	"net/http"
	"strconv"

	"github.com/periplus/periplus/l7"
)

// AppendRequest appends a request's head. A body of unknown length is chunked.
func AppendRequest(b []byte, r *l7.Request) []byte {
	b = append(b, r.Method...)
	b = append(b, ' ')
	if r.Method == "CONNECT" {
		b = append(b, r.Authority...)
	} else {
		b = append(b, r.Path...)
	}
	b = append(b, " HTTP/1.1\r\nHost: "...)
	b = append(b, r.Authority...)
	b = append(b, "\r\n"...)
	b = AppendFields(b, r.Header)
	switch {
	case r.Upgrade != "":
		b = append(b, "Connection: Upgrade\r\nUpgrade: "...)
		b = append(b, r.Upgrade...)
		b = append(b, "\r\n"...)
	case r.Body != nil && r.ContentLength < 0:
		b = append(b, "Transfer-Encoding: chunked\r\n"...)
	case r.ContentLength > 0 || needsLength(r.Method):
		b = append(b, "Content-Length: "...)
		b = strconv.AppendInt(b, max64(r.ContentLength, 0), 10)
		b = append(b, "\r\n"...)
	}
	return append(b, "\r\n"...)
}

// needsLength says for which methods servers want a length even of an empty body.
func needsLength(method string) bool {
	return method == "POST" || method == "PUT" || method == "PATCH"
}

// A Framing says how a response's body is sent.
type Framing int

// Framings.
const (
	// FrameNone sends no length: no body, or an upgrade.
	FrameNone Framing = iota
	// FrameLength sends ContentLength.
	FrameLength
	FrameChunked
	// FrameClose ends the body with the connection: HTTP/1.0.
	FrameClose
)

// AppendResponse appends a response's head. connection is the Connection field's
// value; empty: none.
func AppendResponse(b []byte, r *l7.Response, framing Framing, connection string) []byte {
	b = appendStatus(b, r.Status)
	b = AppendFields(b, r.Header)
	switch framing {
	case FrameLength:
		b = append(b, "Content-Length: "...)
		b = strconv.AppendInt(b, r.ContentLength, 10)
		b = append(b, "\r\n"...)
	case FrameChunked:
		b = append(b, "Transfer-Encoding: chunked\r\n"...)
	}
	if connection != "" {
		b = append(b, "Connection: "...)
		b = append(b, connection...)
		b = append(b, "\r\n"...)
	}
	return append(b, "\r\n"...)
}

func appendStatus(b []byte, status int) []byte {
	if status == 200 {
		return append(b, "HTTP/1.1 200 OK\r\n"...)
	}
	b = append(b, "HTTP/1.1 "...)
	b = strconv.AppendInt(b, int64(status), 10)
	b = append(b, ' ')
	b = append(b, http.StatusText(status)...)
	return append(b, "\r\n"...)
}

// AppendFields appends the lines of a header. What would break the message (it can
// only come from a filter or from HTTP/2) is left out.
func AppendFields(b []byte, h l7.Header) []byte {
	for i := range h {
		name, value := h[i].Name, h[i].Value
		if !ValidName(name) || !ValidValue(value) {
			continue
		}
		b = append(b, name...)
		b = append(b, ": "...)
		b = append(b, value...)
		b = append(b, "\r\n"...)
	}
	return b
}

// ChunkHeadRoom is the space that ChunkAround needs before the data.
const ChunkHeadRoom = 10

// ChunkTailRoom is the space that ChunkAround needs after the data.
const ChunkTailRoom = 2

// ChunkAround makes buf[start:end] a chunk in place and returns it with its size line
// and its CRLF. There must be ChunkHeadRoom before and ChunkTailRoom after.
func ChunkAround(buf []byte, start, end int) []byte {
	n := end - start
	buf = append(buf[:end], "\r\n"...)
	i := start
	buf[i-1], buf[i-2] = '\n', '\r'
	i -= 2
	for {
		i--
		buf[i] = "0123456789abcdef"[n&15]
		if n >>= 4; n == 0 {
			return buf[i:]
		}
	}
}

// AppendChunkEnd appends the last chunk and the trailer.
func AppendChunkEnd(b []byte, trailer l7.Header) []byte {
	b = append(b, "0\r\n"...)
	b = AppendFields(b, trailer)
	return append(b, "\r\n"...)
}
