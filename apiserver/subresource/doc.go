// Package subresource holds the subresources that do something of their own:
// binding, eviction, token, and the streams that the API server passes on to a
// kubelet or a pod (log, exec, attach, portforward, proxy).
//
// Each is a rest.Subresource; List names them all. Subresources that only show
// the same object under other rules are registry.Resource.Views instead.
package subresource
