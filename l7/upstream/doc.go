// Package upstream is clusters at run time: their endpoints, connections to them,
// and how a request is sent over one.
//
//	Table ── Cluster ── host (endpoint) ── HTTP/1 connections, idle ones last in, first out
//	              │                     └─ HTTP/2 connections, shared
//	              └─ balance.Set, circuit breaker, outlier detection
//
// A Table outlives snapshots: what has the same name, and the same address, keeps its
// connections, its counters and its ejections. Connections to endpoints that have
// gone are closed when the requests on them have ended.
//
// Nothing runs for a cluster that is not used: a timer exists only while there are
// idle connections that it will close. An HTTP/1 connection has no goroutine; whether
// the other side has closed it is looked at when it is taken out of the pool.
package upstream
