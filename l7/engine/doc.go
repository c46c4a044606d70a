// Package engine carries out l7 snapshots: it accepts connections, terminates TLS,
// speaks HTTP/1.1, HTTP/2 and plain TCP on both sides, and forwards.
//
//	e := engine.New(engine.Config{…})   // nothing runs yet
//	err := e.Apply(snapshot)            // opens and closes listeners, swaps the rest
//	err = e.Run(ctx)                    // blocks until ctx ends, then drains
//
// Apply may be called before Run and at any time while it runs. A *ListenerError in
// what it returns says which listener could not be opened; everything else is in
// force nevertheless, and the next Apply tries again.
//
// HTTP/1.1 is served by a loop of our own (http1.go): one goroutine a connection, no
// context, timer or map per request unless something asks for it. HTTP/2 is
// golang.org/x/net/http2 with the same forwarding (forward.go) behind it.
//
// The files in the order in which a connection meets them:
//
//	engine.go     Apply: what a snapshot changes
//	listener.go   accepting, handing off, draining
//	inspect.go    the first bytes: TLS server name, HTTP version, PROXY header
//	tls.go        handshakes with certificates that change
//	connection.go one connection: chain, filters, HTTP/1, HTTP/2 or TCP
//	http1.go      requests of an HTTP/1 connection
//	http2.go      requests of an HTTP/2 connection
//	forward.go    filters, route, tries, response
//	reply.go      answers of the proxy itself
//	upgrade.go    after a 101: bytes both ways
//	tcp.go        TCP proxy
//	pipe.go       copy, then splice
package engine
