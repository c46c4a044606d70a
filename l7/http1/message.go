package http1

import (
	"strings"

	"github.com/periplus/periplus/l7"
)

// Info is what a head says besides the message itself.
type Info struct {
	// Minor is the version: 1 for HTTP/1.1.
	Minor int
	// KeepAlive says that the connection can be used again after this message.
	KeepAlive bool
	// Chunked body; without it, ContentLength of the message counts.
	Chunked bool
	// Expect100 says that the client waits for 100 Continue before it sends the body.
	Expect100 bool
	// UntilClose says that the body ends with the connection; responses only.
	UntilClose bool
}

// ReadRequest reads the head of a request. The header of req is overwritten, its
// array used again. started, if not nil, is called when the head has begun but is not
// complete. io.EOF means that the client has ended the connection; an *Error that it
// has to be answered and closed.
func ReadRequest(b *Reader, req *l7.Request, info *Info, max int, started func()) error {
	head, err := b.head(max, started)
	if err != nil {
		return err
	}
	end := strings.IndexByte(head, '\n')
	line := head[:end]
	if line == "" || line[len(line)-1] != '\r' {
		return errBareLF
	}
	line = line[:len(line)-1]
	method, rest, ok := strings.Cut(line, " ")
	target, version, ok2 := strings.Cut(rest, " ")
	if !ok || !ok2 || !ValidName(method) || target == "" {
		return errRequestLine
	}
	for i := 0; i < len(target); i++ {
		if c := target[i]; c <= 0x20 || c == 0x7f || c == '#' {
			return errTarget
		}
	}
	switch version {
	case "HTTP/1.1":
		req.Proto, info.Minor = "HTTP/1.1", 1
	case "HTTP/1.0":
		req.Proto, info.Minor = "HTTP/1.0", 0
	default:
		if strings.HasPrefix(version, "HTTP/") && len(version) == len("HTTP/1.1") {
			return errVersion
		}
		return errRequestLine
	}
	var f framing
	req.Header, err = parseFields(head[end+1:], req.Header[:0], &f)
	if err != nil {
		return err
	}
	if f.hosts > 1 || f.hosts == 0 && info.Minor == 1 {
		return errHost
	}
	req.Method, req.Path, req.Authority = method, target, f.host
	if err := splitTarget(req); err != nil {
		return err
	}
	if !validAuthority(req.Authority) {
		return errHostValue
	}
	if f.chunked && info.Minor == 0 {
		return errCodingVersion
	}
	if f.teTrailers {
		req.Header.Add("TE", "trailers")
	}
	req.Upgrade = strings.ToLower(f.upgrade)
	info.KeepAlive = !f.close && (info.Minor == 1 || f.keepAlive)
	info.Chunked = f.chunked
	info.Expect100 = f.expect && info.Minor == 1
	switch {
	case f.chunked:
		req.ContentLength = -1
	default:
		req.ContentLength = max64(f.length, 0)
	}
	return nil
}

// splitTarget leaves path and query in Path (RFC 9112 §3.2).
func splitTarget(req *l7.Request) error {
	p := req.Path
	switch {
	case p[0] == '/':
		return nil
	case req.Method == "CONNECT":
		req.Authority, req.Path = p, ""
		return nil
	case p == "*":
		if req.Method != "OPTIONS" {
			return errTarget
		}
		return nil
	}
	// absolute-form: its authority counts, whatever Host says.
	scheme, rest, ok := strings.Cut(p, "://")
	if !ok || !strings.EqualFold(scheme, "http") && !strings.EqualFold(scheme, "https") {
		return errTarget
	}
	i := strings.IndexAny(rest, "/?")
	switch {
	case i < 0:
		req.Authority, req.Path = rest, "/"
	case rest[i] == '?':
		req.Authority, req.Path = rest[:i], "/"+rest[i:]
	default:
		req.Authority, req.Path = rest[:i], rest[i:]
	}
	return nil
}

// validAuthority refuses what cannot be part of a host and port.
func validAuthority(a string) bool {
	for i := 0; i < len(a); i++ {
		switch c := a[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		case strings.IndexByte("-._~!$&'()*+,;=:[]%", c) >= 0:
		default:
			return false
		}
	}
	return true
}

// ReadResponse reads the head of a final or interim response to a request of the
// given method.
func ReadResponse(b *Reader, method string, resp *l7.Response, info *Info, max int) error {
	head, err := b.head(max, nil)
	if err != nil {
		return err
	}
	end := strings.IndexByte(head, '\n')
	line := head[:end]
	// HTTP/1.1 200 OK: the reason, even its space, may be missing.
	if len(line) < 13 || line[:7] != "HTTP/1." || line[8] != ' ' || line[len(line)-1] != '\r' {
		return errStatusLine
	}
	switch line[7] {
	case '1':
		info.Minor = 1
	case '0':
		info.Minor = 0
	default:
		return errVersion
	}
	status := 0
	for _, c := range line[9:12] {
		if c < '0' || c > '9' {
			return errStatusLine
		}
		status = status*10 + int(c-'0')
	}
	if status < 100 || len(line) > 13 && line[12] != ' ' {
		return errStatusLine
	}
	var f framing
	resp.Header, err = parseFields(head[end+1:], resp.Header[:0], &f)
	if err != nil {
		return err
	}
	if f.hosts > 0 { // no field of a response, but not ours to judge
		resp.Header.Add("Host", f.host)
	}
	resp.Status = status
	info.KeepAlive = !f.close && (info.Minor == 1 || f.keepAlive)
	info.Chunked, info.UntilClose = f.chunked, false
	switch {
	case method == "HEAD", status == 204, status == 304, status/100 == 1:
		info.Chunked = false
		resp.ContentLength = f.length
		if status == 204 || status/100 == 1 {
			resp.ContentLength = -1
		}
		if status == 101 {
			resp.Header.Add("Upgrade", f.upgrade)
		}
	case method == "CONNECT" && status/100 == 2:
		resp.ContentLength = -1
	case f.chunked:
		resp.ContentLength = -1
	case f.length >= 0:
		resp.ContentLength = f.length
	default:
		resp.ContentLength = -1
		info.UntilClose, info.KeepAlive = true, false
	}
	return nil
}

// HasBody reports whether a response to method with this status has one.
func HasBody(method string, status int) bool {
	return method != "HEAD" && status != 204 && status != 304 && status/100 != 1
}

func max64(a, b int64) int64 { return max(a, b) }
