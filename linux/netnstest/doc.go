// Package netnstest runs tests in network namespaces of their own: a fresh one
// with its loopback up, from which no packet can leave the machine.
//
//	netnstest.Run(t, func(t *testing.T) {
//		pod := netnstest.New(t)          // another one, pinned at pod.Path
//		pod.Do(t, func() { … })
//	})
package netnstest
