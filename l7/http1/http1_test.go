package http1_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/periplus/periplus/l7"
	"github.com/periplus/periplus/l7/http1"
)

const limit = 64 << 10

// read parses one request and its body.
func read(r io.Reader) (*l7.Request, *http1.Info, string, error) {
	in := http1.NewReader(r, nil)
	var q l7.Request
	var info http1.Info
	if err := http1.ReadRequest(in, &q, &info, limit, nil); err != nil {
		return nil, nil, "", err
	}
	var body http1.Body
	body.Reset(in, &info, q.ContentLength, &q.Trailer)
	b, err := io.ReadAll(&body)
	return &q, &info, string(b), err
}

func TestAcceptedRequests(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		in                            string
		method, path, authority, body string
		keepAlive                     bool
		header                        string
	}{
		"plain":             {"GET /a?b HTTP/1.1\r\nHost: h:80\r\nX: y\r\n\r\n", "GET", "/a?b", "h:80", "", true, "X: y"},
		"empty lines first": {"\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n", "GET", "/", "h", "", true, ""},
		"absolute form":     {"GET http://other/x HTTP/1.1\r\nHost: h\r\n\r\n", "GET", "/x", "other", "", true, ""},
		"length":            {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabcd", "POST", "/", "h", "abc", true, ""},
		"same length twice": {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc", "POST", "/", "h", "abc", true, ""},
		"chunked": {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\nA\r\n0123456789\r\n0\r\nT: u\r\n\r\n",
			"POST", "/", "h", "abc0123456789", true, ""},
		"options removed": {"GET / HTTP/1.1\r\nHost: h\r\nConnection: close, x-drop\r\nX-Drop: 1\r\nKeep-Alive: 5\r\nX: y\r\n\r\n", "GET", "/", "h", "", false, "X: y"},
		"1.0":             {"GET / HTTP/1.0\r\n\r\n", "GET", "/", "", "", false, ""},
		"1.0 keep-alive":  {"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", "GET", "/", "", "", true, ""},
		"obs-text":        {"GET /\xe4 HTTP/1.1\r\nHost: h\r\nX: \xe4\r\n\r\n", "GET", "/\xe4", "h", "", true, "X: \xe4"},
	} {
		for way, r := range map[string]io.Reader{"at once": strings.NewReader(test.in), "byte by byte": iotest.OneByteReader(strings.NewReader(test.in))} {
			q, info, body, err := read(r)
			if err != nil {
				t.Errorf("%s, %s: %v", name, way, err)
				continue
			}
			header := strings.TrimSpace(string(http1.AppendFields(nil, q.Header)))
			if q.Method != test.method || q.Path != test.path || q.Authority != test.authority || body != test.body || info.KeepAlive != test.keepAlive || header != test.header {
				t.Errorf("%s, %s: %s %s %s body %q keep-alive %t header %q", name, way, q.Method, q.Path, q.Authority, body, info.KeepAlive, header)
			}
		}
	}
}

// TestRefusedRequests are those in which two parsers could see two different messages.
func TestRefusedRequests(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		in     string
		status int
	}{
		"length and chunked":        {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
		"lengths differ":            {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", 400},
		"list of lengths":           {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3, 3\r\n\r\nabc", 400},
		"signed length":             {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: +3\r\n\r\nabc", 400},
		"huge length":               {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 99999999999999999999\r\n\r\nabc", 400},
		"bare LF":                   {"GET / HTTP/1.1\nHost: h\n\n", 400},
		"bare LF in a field":        {"GET / HTTP/1.1\r\nHost: h\r\nX: a\nY: b\r\n\r\n", 400},
		"bare CR":                   {"GET / HTTP/1.1\r\nHost: h\r\nX: a\rY: b\r\n\r\n", 400},
		"fold":                      {"GET / HTTP/1.1\r\nHost: h\r\nX: a\r\n b\r\n\r\n", 400},
		"space before colon":        {"GET / HTTP/1.1\r\nHost: h\r\nX : a\r\n\r\n", 400},
		"no name":                   {"GET / HTTP/1.1\r\nHost: h\r\n: a\r\n\r\n", 400},
		"no colon":                  {"GET / HTTP/1.1\r\nHost: h\r\nX\r\n\r\n", 400},
		"NUL":                       {"GET / HTTP/1.1\r\nHost: h\r\nX: a\x00b\r\n\r\n", 400},
		"no host":                   {"GET / HTTP/1.1\r\n\r\n", 400},
		"two hosts":                 {"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400},
		"bad host":                  {"GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", 400},
		"gzip coding":               {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 501},
		"coding twice":              {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", 501},
		"coding with vertical tab":  {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: \x0bchunked\r\n\r\n", 400},
		"chunked in 1.0":            {"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
		"version 2":                 {"GET / HTTP/2.0\r\nHost: h\r\n\r\n", 505},
		"two spaces":                {"GET  / HTTP/1.1\r\nHost: h\r\n\r\n", 400},
		"space in target":           {"GET /a b HTTP/1.1\r\nHost: h\r\n\r\n", 400},
		"fragment":                  {"GET /a#b HTTP/1.1\r\nHost: h\r\n\r\n", 400},
		"no version":                {"GET /\r\nHost: h\r\n\r\n", 400},
		"method with a brace":       {"G{T / HTTP/1.1\r\nHost: h\r\n\r\n", 400},
		"relative target":           {"GET a HTTP/1.1\r\nHost: h\r\n\r\n", 400},
		"line before the first one": {" GET / HTTP/1.1\r\nHost: h\r\n\r\n", 400},
	} {
		_, _, _, err := read(strings.NewReader(test.in))
		var bad *http1.Error
		if !errors.As(err, &bad) || bad.Status != test.status {
			t.Errorf("%s: %v, want status %d", name, err, test.status)
		}
	}
}

func TestRefusedChunks(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		"x\r\n", "\r\n", "3\nabc\r\n0\r\n\r\n", "3\r\nabcd\r\n0\r\n\r\n", "3\r\nabc\n0\r\n\r\n", "0x3\r\nabc\r\n0\r\n\r\n", "-3\r\n", "+3\r\nabc\r\n0\r\n\r\n",
		"3 x\r\nabc\r\n0\r\n\r\n", "ffffffffffffffff\r\n", "3;\x00\r\nabc\r\n0\r\n\r\n", "3\r\nab", "3\r\nabc\r\n0\r\n", "3\r\nabc\r\n0\r\nX : y\r\n\r\n",
	} {
		_, _, got, err := read(strings.NewReader("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n" + body))
		if err == nil {
			t.Errorf("body %q is read as %q", body, got)
		}
	}
}

func TestResponses(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		in, method string
		status     int
		body       string
		keepAlive  bool
		fails      bool
	}{
		"length":             {in: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nabX", method: "GET", status: 200, body: "ab", keepAlive: true},
		"no reason":          {in: "HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", method: "GET", status: 200, keepAlive: true},
		"until close":        {in: "HTTP/1.1 200 OK\r\n\r\nabc", method: "GET", status: 200, body: "abc"},
		"HEAD":               {in: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", method: "HEAD", status: 200, keepAlive: true},
		"304 with length":    {in: "HTTP/1.1 304 Not Modified\r\nContent-Length: 2\r\n\r\n", method: "GET", status: 304, keepAlive: true},
		"length and chunked": {in: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", method: "GET", fails: true},
		"letters":            {in: "HTTP/1.1 2x0 OK\r\n\r\n", method: "GET", fails: true},
		"short":              {in: "HTTP/1.1 20\r\n\r\n", method: "GET", fails: true},
		"version 9":          {in: "HTTP/1.9 200 OK\r\n\r\n", method: "GET", fails: true},
	} {
		in := http1.NewReader(strings.NewReader(test.in), nil)
		var r l7.Response
		var info http1.Info
		if err := http1.ReadResponse(in, test.method, &r, &info, limit); (err != nil) != test.fails {
			t.Errorf("%s: error %v, want one: %t", name, err, test.fails)
			continue
		} else if err != nil {
			continue
		}
		got := ""
		if http1.HasBody(test.method, r.Status) {
			var body http1.Body
			body.Reset(in, &info, r.ContentLength, &r.Trailer)
			b, err := io.ReadAll(&body)
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			got = string(b)
		}
		if r.Status != test.status || got != test.body || info.KeepAlive != test.keepAlive {
			t.Errorf("%s: %d %q keep-alive %t", name, r.Status, got, info.KeepAlive)
		}
	}
}

func TestTooLargeHead(t *testing.T) {
	t.Parallel()
	_, _, _, err := read(strings.NewReader("GET / HTTP/1.1\r\nHost: h\r\nX: " + strings.Repeat("x", limit) + "\r\n\r\n"))
	if !errors.Is(err, http1.ErrTooLarge) {
		t.Errorf("error %v, want %v", err, http1.ErrTooLarge)
	}
}

// FuzzRequest checks that whatever is accepted is written in a way that is read as
// the same message: no second request can hide in it.
func FuzzRequest(f *testing.F) {
	f.Add("GET /a?b HTTP/1.1\r\nHost: h:80\r\nX: y\r\n\r\n")
	f.Add("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\nT: u\r\n\r\n")
	f.Add("POST http://a/?q HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nConnection: close, x\r\nX: 1\r\n\r\nabc")
	f.Add("GET / HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n")
	f.Fuzz(func(t *testing.T, in string) {
		q, info, body, err := read(strings.NewReader(in))
		if err != nil {
			return
		}
		slow, _, slowBody, err := read(iotest.OneByteReader(strings.NewReader(in)))
		if err != nil || slow.Method != q.Method || slow.Path != q.Path || slowBody != body {
			t.Fatalf("read byte by byte it is another message: %v", err)
		}
		out := *q
		if body != "" || info.Chunked {
			out.Body, out.ContentLength = strings.NewReader(body), int64(len(body))
		}
		if q.Authority == "" {
			return // 1.0
		}
		wire := string(http1.AppendRequest(nil, &out)) + body
		again, _, bodyAgain, err := read(strings.NewReader(wire))
		if err != nil {
			t.Fatalf("what was written cannot be read: %v\n%q", err, wire)
		}
		if again.Method != q.Method || again.Path != q.Path || again.Authority != q.Authority || bodyAgain != body {
			t.Fatalf("written as %q it is another message", wire)
		}
	})
}
