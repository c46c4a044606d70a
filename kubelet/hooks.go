package kubelet

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// runHook runs a postStart or preStop handler.
func (k *Kubelet) runHook(ctx context.Context, pod *corev1.Pod, c *corev1.Container, id string, h *corev1.LifecycleHandler) error {
	switch {
	case h.Exec != nil:
		return k.execHook(ctx, id, h.Exec)
	case h.HTTPGet != nil:
		return k.httpHook(ctx, pod, c, h.HTTPGet)
	case h.Sleep != nil:
		timer := time.NewTimer(time.Duration(h.Sleep.Seconds) * time.Second)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		return nil
	}
	return fmt.Errorf("invalid handler: %v", h)
}

func (k *Kubelet) execHook(ctx context.Context, id string, h *corev1.ExecAction) error {
	r, err := k.cfg.Runtime.ExecSync(ctx, &runtimeapi.ExecSyncRequest{ContainerId: id, Cmd: h.Command})
	switch {
	case err != nil:
		return err
	case r.ExitCode != 0:
		out := append(r.Stdout, r.Stderr...)
		if len(out) > 1024 {
			out = out[:1024]
		}
		return fmt.Errorf("command %q exited with %d: %s", strings.Join(h.Command, " "), r.ExitCode, out)
	}
	return nil
}

// httpHook asks the container over HTTP, as a probe would. Like upstream it tries
// plain HTTP if the other side of an HTTPS hook does not speak TLS.
func (k *Kubelet) httpHook(ctx context.Context, pod *corev1.Pod, c *corev1.Container, h *corev1.HTTPGetAction) error {
	host := h.Host
	if host == "" {
		ips := k.podIPs(pod)
		if len(ips) == 0 {
			return fmt.Errorf("failed to find networking container: pod %s has no IP", podKey(pod))
		}
		host = ips[0]
	}
	port, err := resolvePort(h.Port, c)
	if err != nil {
		return err
	}
	scheme := strings.ToLower(string(h.Scheme))
	if scheme == "" {
		scheme = "http"
	}
	u, err := url.Parse(h.Path)
	if err != nil {
		u = &url.URL{Path: h.Path}
	}
	u.Scheme, u.Host = scheme, net.JoinHostPort(host, strconv.Itoa(port))
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return err
	}
	for _, header := range h.HTTPHeaders {
		req.Header.Add(header.Name, header.Value)
		if strings.EqualFold(header.Name, "Host") {
			req.Host = header.Value
		}
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true} //nolint:gosec // the pod's certificate is its own affair, as for probes
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil && scheme == "https" && strings.Contains(err.Error(), "server gave HTTP response to HTTPS client") {
		req = req.Clone(ctx)
		req.URL.Scheme = "http"
		req.Header.Del("Authorization")
		resp, err = (&http.Client{Transport: transport}).Do(req)
	}
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 10<<10))
	if resp.StatusCode < 200 || resp.StatusCode >= 400 {
		return fmt.Errorf("HTTP hook answered %s", resp.Status)
	}
	return nil
}

func resolvePort(p intstr.IntOrString, c *corev1.Container) (int, error) {
	if p.Type == intstr.Int {
		return p.IntValue(), nil
	}
	for _, cp := range c.Ports {
		if cp.Name == p.StrVal {
			return int(cp.ContainerPort), nil
		}
	}
	if n, err := strconv.Atoi(p.StrVal); err == nil && n > 0 {
		return n, nil
	}
	return 0, fmt.Errorf("couldn't find port: %v in %v", p.StrVal, c.Name)
}

// podIPs are the addresses under which the pod answers: the host's for pods on
// the host network.
func (k *Kubelet) podIPs(pod *corev1.Pod) []string {
	if isHostNetwork(pod) {
		return k.node.IPs()
	}
	k.mu.Lock()
	w := k.workers[pod.UID]
	k.mu.Unlock()
	if w == nil {
		return nil
	}
	return w.addresses()
}
