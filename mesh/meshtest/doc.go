// Package meshtest is a mesh inside of a test: a control plane over a fake cluster,
// sidecars on loopback, and a fabric that stands in for pod addresses and redirect
// rules, so that neither root nor network namespaces are needed.
//
//	m := meshtest.New(t)
//	web := m.Pod("shop", "web-1", map[string]string{"app": "web"}, handler)
//	m.Service("shop", "web", map[string]string{"app": "web"}, "http", 80, 8080)
//	m.Apply(`{"kind": "VirtualService", …}`)
//	client.Get("http://web.shop/")    through both sidecars, with mutual TLS
package meshtest
