package server

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/proxy"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-streaming/pkg/streaming"
	"k8s.io/cri-streaming/pkg/streaming/portforward"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"

	"github.com/periplus/periplus/base"
)

func (s *Server) exec(w http.ResponseWriter, r *http.Request) {
	options, err := remotecommand.NewOptions(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	id, ok := s.target(w, r)
	if !ok {
		return
	}
	response, err := s.config.Runtime.Exec(r.Context(), &runtimeapi.ExecRequest{
		ContainerId: id,
		Cmd:         r.URL.Query()["command"],
		Tty:         options.TTY, Stdin: options.Stdin, Stdout: options.Stdout, Stderr: options.Stderr,
	})
	s.handOver(w, r, response.GetUrl(), err)
}

func (s *Server) attach(w http.ResponseWriter, r *http.Request) {
	options, err := remotecommand.NewOptions(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	id, ok := s.target(w, r)
	if !ok {
		return
	}
	response, err := s.config.Runtime.Attach(r.Context(), &runtimeapi.AttachRequest{
		ContainerId: id,
		// The container has a terminal or not: the client cannot choose.
		Tty:   options.TTY && s.hasTTY(r),
		Stdin: options.Stdin, Stdout: options.Stdout, Stderr: options.Stderr,
	})
	s.handOver(w, r, response.GetUrl(), err)
}

func (s *Server) portForward(w http.ResponseWriter, r *http.Request) {
	options, err := portforward.NewV4Options(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	pod, ok := s.pod(w, r)
	if !ok {
		return
	}
	sandbox, ok := s.config.Kubelet.SandboxID(pod.UID)
	if !ok {
		http.Error(w, fmt.Sprintf("failed to find sandbox for pod %s_%s", pod.Name, pod.Namespace), http.StatusInternalServerError)
		return
	}
	response, err := s.config.Runtime.PortForward(r.Context(), &runtimeapi.PortForwardRequest{PodSandboxId: sandbox, Port: options.Ports})
	s.handOver(w, r, response.GetUrl(), err)
}

// run is the plain form of exec: the output is the answer.
func (s *Server) run(w http.ResponseWriter, r *http.Request) {
	id, ok := s.target(w, r)
	if !ok {
		return
	}
	response, err := s.config.Runtime.ExecSync(r.Context(), &runtimeapi.ExecSyncRequest{
		ContainerId: id,
		Cmd:         strings.Split(r.FormValue("cmd"), " "),
	})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	output := append(append([]byte(nil), response.Stdout...), response.Stderr...)
	if response.ExitCode != 0 {
		http.Error(w, fmt.Sprintf("command '%s' exited with %d: %s", r.FormValue("cmd"), response.ExitCode, output), http.StatusInternalServerError)
		return
	}
	write(w, "application/json", output)
}

// handOver connects the client with the runtime's streaming server.
func (s *Server) handOver(w http.ResponseWriter, r *http.Request, address string, err error) {
	if err != nil {
		_ = streaming.WriteError(err, w) // maps gRPC's codes
		return
	}
	location, err := url.Parse(address)
	if err != nil {
		http.Error(w, fmt.Sprintf("the runtime gave an unusable streaming address: %v", err), http.StatusInternalServerError)
		return
	}
	proxy.NewUpgradeAwareHandler(location, nil, false, true, s).ServeHTTP(w, r)
}

// Error implements proxy.ErrorResponder.
func (s *Server) Error(w http.ResponseWriter, r *http.Request, err error) {
	s.config.Log.Warn("streaming request failed", base.KeyPath, r.URL.Path, base.KeyError, err)
	http.Error(w, err.Error(), http.StatusInternalServerError)
}

// pod finds the request's pod, or answers.
func (s *Server) pod(w http.ResponseWriter, r *http.Request) (*corev1.Pod, bool) {
	pod, ok := s.config.Kubelet.Pod(r.PathValue("namespace"), r.PathValue("pod"))
	if !ok {
		http.Error(w, "pod does not exist", http.StatusNotFound)
		return nil, false
	}
	if uid := r.PathValue("uid"); uid != "" && pod.UID != types.UID(uid) {
		http.Error(w, "pod not found", http.StatusNotFound)
		return nil, false
	}
	return pod, true
}

// target finds the ID of the request's running container, or answers.
func (s *Server) target(w http.ResponseWriter, r *http.Request) (string, bool) {
	pod, ok := s.pod(w, r)
	if !ok {
		return "", false
	}
	name := r.PathValue("container")
	if c := statusOf(pod, name); c != nil && c.State.Running != nil && c.ContainerID != "" {
		return bareID(c.ContainerID), true
	}
	http.Error(w, fmt.Sprintf("container not found (%q)", name), http.StatusInternalServerError)
	return "", false
}

func (s *Server) hasTTY(r *http.Request) bool {
	pod, ok := s.config.Kubelet.Pod(r.PathValue("namespace"), r.PathValue("pod"))
	if !ok {
		return false
	}
	name := r.PathValue("container")
	for i := range pod.Spec.Containers {
		if pod.Spec.Containers[i].Name == name {
			return pod.Spec.Containers[i].TTY
		}
	}
	for i := range pod.Spec.EphemeralContainers {
		if pod.Spec.EphemeralContainers[i].Name == name {
			return pod.Spec.EphemeralContainers[i].TTY
		}
	}
	return false
}

// statusOf finds a container of any sort.
func statusOf(pod *corev1.Pod, name string) *corev1.ContainerStatus {
	for _, list := range [][]corev1.ContainerStatus{
		pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses, pod.Status.EphemeralContainerStatuses,
	} {
		for i := range list {
			if list[i].Name == name {
				return &list[i]
			}
		}
	}
	return nil
}

func bareID(id string) string {
	if _, bare, ok := strings.Cut(id, "://"); ok {
		return bare
	}
	return id
}
