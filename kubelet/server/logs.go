package server

import (
	"bufio"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/periplus/periplus/base"
)

func (s *Server) containerLogs(w http.ResponseWriter, r *http.Request) {
	options, previous, err := logQuery(r.URL.Query(), time.Now())
	if err != nil {
		http.Error(w, `{"message": "Invalid request: `+err.Error()+`"}`, http.StatusUnprocessableEntity)
		return
	}
	podName, name := r.PathValue("pod"), r.PathValue("container")
	pod, ok := s.config.Kubelet.Pod(r.PathValue("namespace"), podName)
	if !ok {
		http.Error(w, fmt.Sprintf("pod %q does not exist", podName), http.StatusNotFound)
		return
	}
	if !hasContainer(pod, name) {
		http.Error(w, fmt.Sprintf("container %q not found in pod %q", name, podName), http.StatusNotFound)
		return
	}
	id, err := logContainer(pod, name, previous)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	status, err := s.config.Runtime.ContainerStatus(r.Context(), &runtimeapi.ContainerStatusRequest{ContainerId: id})
	if err != nil {
		http.Error(w, fmt.Sprintf("unable to retrieve container logs for %s: %v", id, err), http.StatusBadRequest)
		return
	}

	w.Header().Set("Content-Type", "text/plain")
	control := http.NewResponseController(w)
	out := bufio.NewWriterSize(w, 32<<10)
	options.flush = func() {
		// Whether the client is still there shows in the request's context.
		_ = out.Flush()
		_ = control.Flush()
	}
	if options.stdout != nil {
		options.stdout = out
	}
	if options.stderr != nil {
		options.stderr = out
	}
	var exited <-chan struct{}
	if options.follow {
		exited = s.config.Kubelet.Exited(id)
	}
	err = readLog(r.Context(), status.GetStatus().GetLogPath(), options, exited)
	_ = out.Flush()
	if err != nil && r.Context().Err() == nil {
		s.config.Log.Warn("container log cannot be read", base.KeyPod, pod.Namespace+"/"+pod.Name,
			base.KeyContainer, name, base.KeyError, err)
		http.Error(w, fmt.Sprintf("failed to read the log of container %q: %v", name, err), http.StatusBadRequest)
	}
}

// wanted marks a stream in the options until the writer exists.
type wanted struct{}

func (wanted) Write(p []byte) (int, error) { return len(p), nil }

// logQuery reads the fields of PodLogOptions from a query.
func logQuery(q url.Values, now time.Time) (o logOptions, previous bool, err error) {
	o = logOptions{tail: -1, limit: -1, stdout: wanted{}, stderr: wanted{}}
	var errs []error
	flag := func(name string) bool {
		v := q.Get(name)
		return v != "" && v != "false" && v != "0" || v == "" && q.Has(name)
	}
	number := func(name string, least int64, set func(int64)) {
		v := q.Get(name)
		if v == "" {
			return
		}
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil || n < least {
			errs = append(errs, fmt.Errorf("%s=%s: must be a number, at least %d", name, v, least))
			return
		}
		set(n)
	}
	o.follow, o.timestamps, previous = flag("follow"), flag("timestamps"), flag("previous")
	if q.Get("tail") != "all" {
		number("tail", 0, func(n int64) { o.tail = n })
	}
	number("tailLines", 0, func(n int64) { o.tail = n })
	number("limitBytes", 1, func(n int64) { o.limit = n })
	number("sinceSeconds", 1, func(n int64) { o.since = now.Add(-time.Duration(n) * time.Second) })
	if v := q.Get("sinceTime"); v != "" {
		t, err := time.Parse(time.RFC3339, v)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("sinceTime=%s: must be a time as in RFC 3339", v))
		case q.Get("sinceSeconds") != "":
			errs = append(errs, errors.New("at most one of sinceTime or sinceSeconds may be specified"))
		}
		o.since = t
	}
	switch v := q.Get("stream"); v {
	case "", corev1.LogStreamAll:
	case corev1.LogStreamStdout:
		o.stderr = nil
	case corev1.LogStreamStderr:
		o.stdout = nil
	default:
		errs = append(errs, fmt.Errorf("stream=%s: must be All, Stdout or Stderr", v))
	}
	if o.tail >= 0 && (o.stdout == nil || o.stderr == nil) {
		errs = append(errs, errors.New("tailLines and a single stream cannot be combined"))
	}
	return o, previous, errors.Join(errs...)
}

func hasContainer(pod *corev1.Pod, name string) bool {
	for i := range pod.Spec.Containers {
		if pod.Spec.Containers[i].Name == name {
			return true
		}
	}
	for i := range pod.Spec.InitContainers {
		if pod.Spec.InitContainers[i].Name == name {
			return true
		}
	}
	for i := range pod.Spec.EphemeralContainers {
		if pod.Spec.EphemeralContainers[i].Name == name {
			return true
		}
	}
	return false
}

// logContainer chooses the container whose log is meant: the one that runs or
// ran last, or the one before. The texts are upstream's; kubectl shows them.
func logContainer(pod *corev1.Pod, name string, previous bool) (string, error) {
	c := statusOf(pod, name)
	if c == nil {
		return "", fmt.Errorf("container %q in pod %q is not available", name, pod.Name)
	}
	last, now := c.LastTerminationState.Terminated, c.State.Terminated
	lastID := ""
	if last != nil {
		lastID = last.ContainerID
	}
	id := ""
	switch {
	case previous:
		if lastID == "" {
			return "", fmt.Errorf("previous terminated container %q in pod %q not found", name, pod.Name)
		}
		id = lastID
	case c.State.Running != nil:
		id = c.ContainerID
	case now != nil && now.ContainerID != "":
		id = now.ContainerID
	case now != nil || last != nil:
		// The next one did not start: the one before has the log.
		if lastID == "" {
			return "", fmt.Errorf("container %q in pod %q is terminated", name, pod.Name)
		}
		id = lastID
	case c.State.Waiting != nil:
		why := c.State.Waiting.Reason
		switch why {
		case "ErrImagePull":
			why = "image can't be pulled"
		case "ImagePullBackOff":
			why = "trying and failing to pull image"
		}
		return "", fmt.Errorf("container %q in pod %q is waiting to start: %s", name, pod.Name, why)
	default:
		return "", fmt.Errorf("container %q in pod %q is waiting to start - no logs yet", name, pod.Name)
	}
	return bareID(id), nil
}
