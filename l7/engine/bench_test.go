package engine_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"

	"github.com/periplus/periplus/l7"
	"github.com/periplus/periplus/l7/http1"
)

// rawServer answers every request with 1 KB as cheaply as can be, so that the proxy
// between is most of what is measured.
func rawServer(b *testing.B) string {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = l.Close() })
	response := append([]byte("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 1024\r\n\r\n"), bytes.Repeat([]byte("x"), 1024)...)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				in := http1.NewReader(c, nil)
				var q l7.Request
				var info http1.Info
				for http1.ReadRequest(in, &q, &info, 1<<16, nil) == nil {
					if _, err := c.Write(response); err != nil {
						return
					}
				}
			}()
		}
	}()
	return l.Addr().String()
}

// ask sends requests over one connection, one after the other.
func ask(b *testing.B, address string) {
	c, err := net.Dial("tcp", address)
	if err != nil {
		b.Error(err)
		return
	}
	defer c.Close()
	request := []byte("GET /path?query=1 HTTP/1.1\r\nHost: shop.example\r\nUser-Agent: bench\r\nAccept: */*\r\nAccept-Encoding: gzip\r\n\r\n")
	in := http1.NewReader(c, nil)
	var r l7.Response
	var info http1.Info
	var body http1.Body
	buf := make([]byte, 4096)
	for b.Loop() {
		if _, err := c.Write(request); err != nil {
			b.Error(err)
			return
		}
		if err := http1.ReadResponse(in, "GET", &r, &info, 1<<16); err != nil || r.Status != 200 {
			b.Error(err, r.Status)
			return
		}
		body.Reset(in, &info, r.ContentLength, nil)
		for !body.Done() {
			if _, err := body.Read(buf); err != nil && !errors.Is(err, io.EOF) {
				b.Error(err)
				return
			}
		}
	}
}

func BenchmarkDirect(b *testing.B) { ask(b, rawServer(b)) }

func BenchmarkEngine(b *testing.B) {
	b.ReportAllocs()
	e := start(b, snapshot(nil, rawServer(b)))
	ask(b, e.Addr("web"))
}

func BenchmarkReverseProxy(b *testing.B) {
	b.ReportAllocs()
	to := &url.URL{Scheme: "http", Host: rawServer(b)}
	p := &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(to); r.Out.Host = r.In.Host; r.SetXForwarded() },
		Transport: &http.Transport{MaxIdleConnsPerHost: 100, DisableCompression: true},
	}
	s := httptest.NewServer(p)
	b.Cleanup(s.Close)
	ask(b, s.Listener.Addr().String())
}
