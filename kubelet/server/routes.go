package server

import (
	"encoding/json"
	"net/http"

	corev1 "k8s.io/api/core/v1"

	"github.com/periplus/periplus/base"
)

// newRoutes is the list of everything that is served.
func (s *Server) newRoutes() http.Handler {
	mux := http.NewServeMux()
	handle := mux.HandleFunc

	handle("GET /healthz", s.health)
	handle("GET /healthz/ping", s.ok)
	handle("GET /healthz/log", s.ok)
	handle("GET /healthz/syncloop", s.health)

	handle("GET /pods", s.pods)
	handle("GET /pods/", s.pods)
	handle("GET /runningpods", s.runningPods)
	handle("GET /runningpods/", s.runningPods)
	handle("GET /configz", s.configz)
	handle("GET /stats/summary", s.summary)
	handle("POST /stats/summary", s.summary)
	handle("GET /metrics/resource", s.resourceMetrics)
	handle("GET /metrics/cadvisor", s.cadvisorMetrics)
	handle("POST /checkpoint/{namespace}/{pod}/{container}", s.checkpoint)
	if s.config.Metrics != nil {
		mux.Handle("GET /metrics", s.config.Metrics)
		mux.Handle("GET /metrics/", s.config.Metrics)
	}

	handle("GET /containerLogs/{namespace}/{pod}/{container}", s.containerLogs)
	// A WebSocket begins with GET, SPDY with POST.
	for _, method := range []string{"GET ", "POST "} {
		handle(method+"/exec/{namespace}/{pod}/{container}", s.exec)
		handle(method+"/exec/{namespace}/{pod}/{uid}/{container}", s.exec)
		handle(method+"/attach/{namespace}/{pod}/{container}", s.attach)
		handle(method+"/attach/{namespace}/{pod}/{uid}/{container}", s.attach)
		handle(method+"/portForward/{namespace}/{pod}", s.portForward)
		handle(method+"/portForward/{namespace}/{pod}/{uid}", s.portForward)
	}
	handle("POST /run/{namespace}/{pod}/{container}", s.run)
	handle("POST /run/{namespace}/{pod}/{uid}/{container}", s.run)

	handle("/logs/", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "logs endpoint is disabled.", http.StatusMethodNotAllowed)
	})
	return mux
}

func (s *Server) ok(w http.ResponseWriter, _ *http.Request) {
	write(w, "text/plain; charset=utf-8", []byte("ok"))
}

func (s *Server) health(w http.ResponseWriter, r *http.Request) {
	if err := s.config.Kubelet.Healthy(); err != nil {
		http.Error(w, "[-]syncloop failed: "+err.Error()+"\nhealthz check failed", http.StatusInternalServerError)
		return
	}
	s.ok(w, r)
}

func (s *Server) pods(w http.ResponseWriter, _ *http.Request) {
	s.writePods(w, s.config.Kubelet.Pods())
}

func (s *Server) runningPods(w http.ResponseWriter, r *http.Request) {
	pods, err := s.config.Kubelet.RunningPods(r.Context())
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	s.writePods(w, pods)
}

func (s *Server) writePods(w http.ResponseWriter, pods []*corev1.Pod) {
	list := corev1.PodList{Items: make([]corev1.Pod, len(pods))}
	list.Kind, list.APIVersion = "PodList", "v1"
	for i, p := range pods {
		list.Items[i] = *p // shallow: only read
	}
	s.writeJSON(w, &list)
}

func (s *Server) configz(w http.ResponseWriter, _ *http.Request) {
	s.writeJSON(w, s.config.Kubelet.Configuration())
}

func (s *Server) summary(w http.ResponseWriter, r *http.Request) {
	only := r.FormValue("only_cpu_and_memory") == "true"
	answer, err := s.config.Kubelet.Summary(r.Context(), only)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	s.writeJSON(w, answer)
}

func (s *Server) writeJSON(w http.ResponseWriter, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		s.config.Log.Error("answer cannot be encoded", base.KeyError, err)
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	write(w, "application/json", data)
}

// write answers 200. The client may be gone: nobody is left to be told.
func write(w http.ResponseWriter, contentType string, data []byte) {
	w.Header().Set("Content-Type", contentType)
	_, _ = w.Write(data)
}
