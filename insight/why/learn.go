package why

import (
	"context"
	"io"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/periplus/periplus/client/conditions"
	"github.com/periplus/periplus/insight"
)

const (
	logLines = 40
	logBytes = 64 << 10
	// mostPods bounds how many logs are read: replicas fail alike.
	mostPods = 10
	// mostTries bounds how many ports and names are tried.
	mostTries = 8
	tryTime   = 3 * time.Second
)

// crowded reports that a pod waits for room on a node.
func crowded(s *insight.Snapshot, found []insight.Object) bool {
	for _, o := range Reach(s, found...) {
		if p, ok := o.(*corev1.Pod); ok {
			if u, ok := unscheduledOf(s, p); ok && (strings.Contains(u.message, "Insufficient") || strings.Contains(u.message, "Too many") || strings.Contains(u.message, "free ports")) {
				return true
			}
		}
	}
	return false
}

// learn fetches logs of containers that fail, and tries the ports of Services and the
// names that they lead to.
func learn(ctx context.Context, c kubernetes.Interface, p Prober, s *insight.Snapshot, objects []insight.Object) {
	var mu sync.Mutex // guards s
	var all sync.WaitGroup
	pods, tries := 0, 0
	for _, o := range objects {
		switch o := o.(type) {
		case *corev1.Pod:
			if conditions.PodReady(o) || o.Status.Phase == corev1.PodSucceeded || pods >= mostPods {
				continue
			}
			read := false
			for _, ct := range containersOf(s, o) {
				if ct.status.State.Running == nil && ct.ended() == nil {
					continue
				}
				read = true
				all.Go(func() { readLog(ctx, c, s, &mu, ct) })
			}
			if read {
				pods++
			}
		case *corev1.Service:
			if p == nil {
				continue
			}
			if o.Spec.Type == corev1.ServiceTypeExternalName && tries < mostTries {
				tries++
				all.Go(func() {
					name := strings.TrimSuffix(o.Spec.ExternalName, ".")
					limited, cancel := context.WithTimeout(ctx, tryTime)
					defer cancel()
					err := p.Resolves(limited, name)
					mu.Lock()
					defer mu.Unlock()
					s.SetName(name, err)
				})
			}
			for pod, port := range listeners(s, o) {
				if tries++; tries > mostTries {
					break
				}
				all.Go(func() {
					limited, cancel := context.WithTimeout(ctx, tryTime)
					defer cancel()
					err := p.Listens(limited, pod, port)
					if limited.Err() != nil {
						return // not known
					}
					mu.Lock()
					defer mu.Unlock()
					s.SetPort(pod.Name, port, err)
				})
			}
		}
	}
	all.Wait()
}

// listeners are the ports of a Service that can be tried: of one ready pod each.
func listeners(s *insight.Snapshot, svc *corev1.Service) func(yield func(*corev1.Pod, int32) bool) {
	return func(yield func(*corev1.Pod, int32) bool) {
		for _, pod := range insight.Living(s.Selected(svc.Namespace, svc.Spec.Selector)) {
			if !conditions.PodReady(pod) {
				continue
			}
			for _, sp := range svc.Spec.Ports {
				if sp.Protocol != "" && sp.Protocol != corev1.ProtocolTCP {
					continue
				}
				n, _ := insight.ContainerPort(pod, sp.TargetPort, sp.Protocol)
				if n == 0 && sp.TargetPort.StrVal == "" {
					n = sp.Port
				}
				if n != 0 && !yield(pod, n) {
					return
				}
			}
			return
		}
	}
}

// readLog reads the end of a container's log, and of the one before.
func readLog(ctx context.Context, c kubernetes.Interface, s *insight.Snapshot, mu *sync.Mutex, ct *container) {
	for _, previous := range []bool{false, true} {
		if previous && ct.status.RestartCount == 0 {
			continue
		}
		lines, limit := int64(logLines), int64(logBytes)
		r, err := c.CoreV1().Pods(ct.pod.Namespace).GetLogs(ct.pod.Name, &corev1.PodLogOptions{Container: ct.spec.Name, Previous: previous, TailLines: &lines, LimitBytes: &limit}).Stream(ctx)
		if err != nil {
			continue // the log may be gone; statuses and events remain
		}
		text, err := io.ReadAll(io.LimitReader(r, logBytes))
		_ = r.Close()
		if err != nil && len(text) == 0 {
			continue
		}
		mu.Lock()
		s.SetLog(ct.pod.Name, ct.spec.Name, previous, string(text))
		mu.Unlock()
	}
}
