package l7

// A Filter sees each request of the chain that it is in. It is a value of the
// snapshot, used by many goroutines at once: what it holds is immutable or guarded.
// State that shall outlive a snapshot (the tokens of a rate limit) is held by
// whoever makes the filter and given to the next one.
//
// The order is: the filters of the connection manager, then a route is chosen, then
// the filters of the virtual host, of the route, and of the weighted cluster.
// Responses pass those that have seen the request in the opposite order.
type Filter interface {
	// Request is called when the head of a request is there. It may change
	// x.Request, wrap its Body, and block as long as x.Context() allows. A reply that
	// is not nil ends the request: later filters do not see it.
	Request(x *Exchange) *Reply
}

// A ResponseFilter also sees the head of the response, local replies included,
// before it is sent.
type ResponseFilter interface {
	Filter
	Response(x *Exchange)
}

// An EndFilter also sees the end of the request, whatever it was.
type EndFilter interface {
	Filter
	End(x *Exchange)
}

// A ConnectionFilter sees a connection once, after TLS and before its first request.
// An error closes it; it is logged at debug level and given to observers.
type ConnectionFilter interface {
	Connection(c *Connection) error
}

// FilterFunc is a Filter made of a function.
type FilterFunc func(x *Exchange) *Reply

// Request implements Filter.
func (f FilterFunc) Request(x *Exchange) *Reply { return f(x) }

// An Observer is told of each request when it has ended: for access logs, metrics
// and traces. It must not keep x.
type Observer interface {
	Request(x *Exchange)
}

// A ConnectionObserver is told when a connection begins and ends.
type ConnectionObserver interface {
	Opened(c *Connection)
	Closed(c *Connection)
}

// A Reply is an answer of the proxy itself. A gRPC request gets it as a gRPC
// status: 400 → INTERNAL, 401 → UNAUTHENTICATED, 403 → PERMISSION_DENIED, 404 →
// UNIMPLEMENTED, 429, 502, 503, 504 → UNAVAILABLE, others → UNKNOWN.
type Reply struct {
	Status int
	Header Header
	// Body is sent as text/plain unless Header has a Content-Type.
	Body string
	// GRPCStatus, if not zero, is the gRPC status to send to a gRPC request.
	GRPCStatus int
	// Flag and Details are for observers: "RL", "rate_limited".
	Flag    Flag
	Details string
	// Close closes the connection without any answer.
	Close bool
}
