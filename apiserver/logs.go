package apiserver

import "net/http"

// logs shows the files of the log directory: GET /logs/ and /logs/{logpath}.
func (s *Server) logs() http.Handler {
	if s.config.LogDir == "" {
		return http.NotFoundHandler()
	}
	return http.StripPrefix("/logs/", http.FileServer(http.Dir(s.config.LogDir)))
}
