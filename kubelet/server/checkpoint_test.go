package server_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/periplus/periplus/kubelet/server"
)

// TestCheckpoint: what cannot be is told as upstream tells it.
func TestCheckpoint(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.pod.Spec.Containers = []corev1.Container{{Name: "c"}}
	n.pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", ContainerID: "x://1", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	dir := t.TempDir()
	h := newServer(t, n, func(c *server.Config) { c.CheckpointDir = dir }).Handler()
	for path, want := range map[string]string{
		"/checkpoint/ns/none/c":          "404 pod does not exist",
		"/checkpoint/ns/web/d":           "404 container d does not exist",
		"/checkpoint/ns/web/c?timeout=x": "404 cannot parse value of timeout parameter",
		"/checkpoint/ns/web/c":           "500 checkpointing of ns/web/c failed (rpc error: code = Unimplemented desc = method CheckpointContainer not implemented)",
	} {
		r := httptest.NewRequest(http.MethodPost, path, http.NoBody)
		r.Header.Set("Authorization", "Bearer root")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if got := strings.TrimSpace(w.Result().Status[:4] + w.Body.String()); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}
