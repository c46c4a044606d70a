package apiserver

import (
	"net/http"
	"net/http/pprof"
)

// profiling serves profiles below /debug/pprof to those who are authorized for the
// path, as upstream does unless it is told not to.
func profiling() http.Handler {
	routes := http.NewServeMux()
	routes.HandleFunc("/debug/pprof/", pprof.Index)
	routes.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	routes.HandleFunc("/debug/pprof/profile", pprof.Profile)
	routes.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	routes.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return routes
}
