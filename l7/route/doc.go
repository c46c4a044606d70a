// Package route compiles route configurations and finds the route of a request.
//
//	Compile(RouteConfiguration) ── Table.Match(exchange) ── virtual host, route
//
// It also computes what routes do to a request: rewritten paths and locations of
// redirects. Everything is a pure function of the request.
package route
