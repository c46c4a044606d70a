// Package proxy makes Services work on a node: it compiles Services and
// EndpointSlices into a model and hands what changed to a backend, which
// programs the kernel.
//
//	informers ─▶ tracker (model.go, compile.go) ─▶ []Update ─▶ Backend ─▶ kernel
//	   events     marks Services dirty               diff       nftables …
//
// Nothing happens without an event. Events that arrive while the backend works
// are taken together in its next round, so that a burst costs few
// transactions and a single change is not delayed.
//
// A Service with the annotation periplus.io/node-local: "true" gets no rules: a
// process on every node listens on its cluster IP.
//
// A backend is a child folder and one line in proxy/all; proxy/proxytest is the
// suite that each must pass.
package proxy
