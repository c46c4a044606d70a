// Package fault delays and aborts a part of the requests, to see how clients cope
// (xDS: envoy.filters.http.fault).
package fault
