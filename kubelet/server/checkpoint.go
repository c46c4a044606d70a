package server

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// checkpoint lets the runtime write a container's state to a file (KEP-2008). What a
// runtime that cannot do so says is the answer.
func (s *Server) checkpoint(w http.ResponseWriter, r *http.Request) {
	namespace, name, container := r.PathValue("namespace"), r.PathValue("pod"), r.PathValue("container")
	pod, ok := s.config.Kubelet.Pod(namespace, name)
	if !ok {
		http.Error(w, "pod does not exist", http.StatusNotFound)
		return
	}
	id, known := runningID(pod, container)
	if !known {
		http.Error(w, fmt.Sprintf("container %v does not exist", container), http.StatusNotFound)
		return
	}
	req := &runtimeapi.CheckpointContainerRequest{ContainerId: id}
	if list := r.URL.Query()["timeout"]; len(list) > 0 {
		seconds, err := strconv.ParseInt(list[len(list)-1], 10, 64)
		if err != nil {
			http.Error(w, "cannot parse value of timeout parameter", http.StatusNotFound)
			return
		}
		req.Timeout = seconds
	}
	err := errors.New("container " + container + " not found")
	if id != "" {
		err = os.MkdirAll(s.config.CheckpointDir, 0o700)
	}
	if err == nil {
		req.Location = filepath.Join(s.config.CheckpointDir, fmt.Sprintf("checkpoint-%s_%s-%s-%s.tar", name, namespace, container, time.Now().Format(time.RFC3339)))
		_, err = s.config.Runtime.CheckpointContainer(r.Context(), req)
	}
	if err != nil {
		http.Error(w, fmt.Sprintf("checkpointing of %v/%v/%v failed (%v)", namespace, name, container, err), http.StatusInternalServerError)
		return
	}
	s.writeJSON(w, map[string][]string{"items": {req.Location}})
}

// runningID is the runtime's ID of a container of the pod, "" if it does not run.
func runningID(pod *corev1.Pod, name string) (id string, known bool) {
	for _, list := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range list {
			known = known || list[i].Name == name
		}
	}
	for i := range pod.Spec.EphemeralContainers {
		known = known || pod.Spec.EphemeralContainers[i].Name == name
	}
	st := &pod.Status
	for _, list := range [][]corev1.ContainerStatus{st.ContainerStatuses, st.InitContainerStatuses, st.EphemeralContainerStatuses} {
		for i := range list {
			if list[i].Name == name && list[i].State.Running != nil {
				return bareID(list[i].ContainerID), known
			}
		}
	}
	return "", known
}
