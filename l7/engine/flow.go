package engine

import (
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/periplus/periplus/l7"
	"github.com/periplus/periplus/l7/route"
	"github.com/periplus/periplus/l7/upstream"
)

// A responder is the client's side of a request: HTTP/1 or HTTP/2.
type responder interface {
	// respond sends x.Response.
	respond(f *flow) error
	// upgrade sends a 101 and moves bytes until both sides have ended.
	upgrade(f *flow, c *upstream.Call) error
	context() context.Context
	// interrupt ends a read of the request's body.
	interrupt()
	// watch calls abort when the client goes; stop ends that. stop may be nil.
	watch(abort func()) (stop func())
	// abort breaks the response off, so that the client can see it.
	abort()
}

// A flow is one request from its head to its end. It is reused on HTTP/1 connections.
type flow struct {
	engine *Engine
	down   responder
	info   *l7.Connection
	now    *compiled
	m      *manager

	x    l7.Exchange
	out  l7.Request // what is sent to the endpoint
	body requestBody
	call upstream.Call
	// passed are the filters that have seen the request.
	passed []l7.Filter
	// cookie is set on the response: of a hash policy.
	cookie  string
	began   bool // the response has begun
	aborted bool
}

// reset makes f ready for the next request.
func (f *flow) reset(c *l7.Connection, ctx func() context.Context) {
	f.x.Reset(c, ctx)
	clear(f.passed)
	f.passed, f.cookie, f.began, f.aborted = f.passed[:0], "", false, false
}

// serve carries a request out, in the snapshot now.
func (f *flow) serve(now *compiled, m *manager) {
	f.now, f.m = now, m
	x := &f.x
	x.Start = time.Now()
	f.body.reset(x.Request.Body)
	if x.Request.Body != nil {
		x.Request.Body = &f.body
	}
	if reply := f.admit(); reply != nil {
		f.reply(reply)
	} else {
		f.route()
	}
	f.end()
}

// refuse answers what could not be read as a request.
func (f *flow) refuse(m *manager, r *l7.Reply) {
	f.m = m
	f.x.Start = time.Now()
	f.reply(r)
	f.end()
}

// admit checks and completes the request.
func (f *flow) admit() *l7.Reply {
	q := &f.x.Request
	if q.Method == "CONNECT" && !slices.Contains(f.m.Upgrades, "CONNECT") {
		return &l7.Reply{Status: 405, Details: "connect_not_allowed"}
	}
	if f.m.NormalizePath {
		path, ok := route.Normalize(q.Path, f.m.MergeSlashes)
		if !ok {
			return &l7.Reply{Status: 400, Details: "path_normalization_failed"}
		}
		q.Path = path
	}
	forwarded(&f.x, f.m)
	return nil
}

// route runs the filters, finds the route and does what it says.
func (f *flow) route() {
	x := &f.x
	if !f.filter(f.m.Filters) {
		return
	}
	table := f.now.routes[f.m.RouteConfig]
	if table == nil {
		f.reply(&l7.Reply{Status: 404, Flag: l7.FlagNoRoute, Details: "route_configuration_not_found"})
		return
	}
	x.VirtualHost, x.Route = table.Match(x)
	if x.Route == nil {
		f.reply(&l7.Reply{Status: 404, Flag: l7.FlagNoRoute, Details: "route_not_found"})
		return
	}
	if !f.filter(x.VirtualHost.Filters) || !f.filter(x.Route.Filters) {
		return
	}
	switch r := x.Route; {
	case r.Direct != nil:
		f.reply(r.Direct)
	case r.Redirect != nil:
		code := r.Redirect.Code
		if code == 0 {
			code = 301
		}
		f.reply(&l7.Reply{Status: code, Header: l7.Header{{Name: "Location", Value: route.Location(r.Redirect, &r.Match.Path, &x.Request)}}})
	default:
		f.forward(r.Forward)
	}
}

// filter runs filters; false: the request has been answered.
func (f *flow) filter(filters []l7.Filter) bool {
	for _, filter := range filters {
		f.passed = append(f.passed, filter)
		if r := filter.Request(&f.x); r != nil {
			f.reply(r)
			return false
		}
	}
	return true
}

// reply answers by itself.
func (f *flow) reply(r *l7.Reply) {
	if r.Close {
		f.x.Flags |= r.Flag
		f.x.Details = r.Details
		f.down.abort()
		return
	}
	local(&f.x, r)
	f.sent(f.respond())
}

// respond runs the filters over the response and sends it.
func (f *flow) respond() error {
	for _, v := range slices.Backward(f.passed) {
		if r, ok := v.(l7.ResponseFilter); ok {
			r.Response(&f.x)
		}
	}
	h := &f.x.Response.Header
	if f.m.ServerHeader != "" {
		h.Set("Server", f.m.ServerHeader)
	}
	if f.cookie != "" {
		h.Add("Set-Cookie", f.cookie)
	}
	f.began = true
	return f.down.respond(f)
}

// sent records how sending has ended.
func (f *flow) sent(err error) {
	if err == nil {
		return
	}
	x := &f.x
	var client *clientError
	switch {
	case errors.As(err, &client):
		x.Flags |= l7.FlagDownstreamDisconnect
		setDetails(x, "downstream_remote_disconnect")
	default:
		x.Flags |= l7.FlagUpstreamReset
		setDetails(x, "upstream_reset_after_response_started")
	}
	f.down.abort()
}

func setDetails(x *l7.Exchange, details string) {
	if x.Details == "" {
		x.Details = details
	}
}

// end tells filters and observers.
func (f *flow) end() {
	x := &f.x
	x.Duration = time.Since(x.Start)
	x.BytesReceived += f.body.read
	for _, v := range slices.Backward(f.passed) {
		if e, ok := v.(l7.EndFilter); ok {
			e.End(x)
		}
	}
	for _, o := range f.m.Observers {
		o.Request(x)
	}
	f.body.release()
}

// idle is the longest time without a byte; zero: none.
func (f *flow) idle() time.Duration {
	if r := f.x.Route; r != nil && r.Forward != nil && r.Forward.IdleTimeout != 0 {
		return max(r.Forward.IdleTimeout, 0)
	}
	return max(f.m.StreamIdleTimeout, 0)
}

// maxKept is how much of a request's body is kept for another try or for mirrors.
const maxKept = 64 << 10

// errTooLarge says that a body is larger than the route allows.
var errTooLarge = errors.New("the request's body is larger than allowed")

// A requestBody counts what is read, and keeps the beginning for another try.
type requestBody struct {
	src   io.Reader
	read  int64
	limit int64 // zero: none
	keep  bool
	kept  []byte
	at    int  // how much of kept this try has read
	whole bool // the end has been read
}

func (b *requestBody) reset(src io.Reader) {
	*b = requestBody{src: src, kept: b.kept[:0]}
}

func (b *requestBody) release() {
	b.src = nil
	if cap(b.kept) > 8<<10 {
		b.kept = nil
	}
}

// replayable reports whether a new try can read the body from its beginning.
func (b *requestBody) replayable() bool {
	return b.src == nil || b.read == 0 || b.keep
}

// again begins another try.
func (b *requestBody) again() { b.at = 0 }

// Read implements io.Reader.
func (b *requestBody) Read(p []byte) (int, error) {
	if b.at < len(b.kept) {
		n := copy(p, b.kept[b.at:])
		b.at += n
		return n, nil
	}
	if b.whole {
		return 0, io.EOF
	}
	n, err := b.src.Read(p)
	b.read += int64(n)
	if b.limit > 0 && b.read > b.limit {
		return 0, errTooLarge
	}
	if b.keep && n > 0 {
		if len(b.kept)+n > maxKept {
			b.keep, b.kept, b.at = false, nil, 0
		} else {
			b.kept = append(b.kept, p[:n]...)
			b.at = len(b.kept)
		}
	}
	if err == io.EOF { //nolint:errorlint // an io.Reader's EOF is not wrapped
		b.whole = true
	}
	return n, err
}

// Ready says how much can be read at once.
func (b *requestBody) Ready() int {
	if b.at < len(b.kept) {
		return len(b.kept) - b.at
	}
	if r, ok := b.src.(interface{ Ready() int }); ok {
		return r.Ready()
	}
	return 0
}
