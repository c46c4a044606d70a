package probe

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/periplus/periplus/base"
)

// Reasons of events.
const (
	reasonUnhealthy = "Unhealthy"
	reasonWarning   = "ProbeWarning"
)

// errWarning marks an answer that counts as success but deserves an event.
var errWarning = errors.New("warning")

// How often a probe that could not be carried out is tried in one period.
const attempts = 3

// maxOutput bounds what is kept of a probe's answer, in bytes.
const maxOutput = 10 << 10

// ask carries one probe out and records its event. An error means that the probe
// could not be carried out: it does not count.
func (p *Prober) ask(ctx context.Context, c *container, kind Kind, spec *corev1.Probe) (Result, string, error) {
	var (
		result Result
		output string
		err    error
	)
	for range attempts {
		result, output, err = p.check(ctx, c, spec)
		if err == nil || errors.Is(err, errWarning) || ctx.Err() != nil {
			break
		}
	}
	if ctx.Err() != nil {
		return Unknown, "", ctx.Err()
	}
	switch {
	case errors.Is(err, errWarning):
		p.event(c, reasonWarning, fmt.Sprintf("%s probe warning: %s", kind, output))
		return Success, output, nil
	case err != nil:
		p.config.Log.Warn("probe cannot be carried out", base.KeyPod, c.pod.Namespace+"/"+c.pod.Name,
			base.KeyContainer, c.spec.Name, base.KeyKind, string(kind), base.KeyError, err)
		p.event(c, reasonUnhealthy, fmt.Sprintf("%s probe errored and resulted in unknown state: %v", kind, err))
		return Unknown, "", err
	case result == Failure:
		p.event(c, reasonUnhealthy, fmt.Sprintf("%s probe failed: %s", kind, output))
	}
	return result, output, nil
}

func (p *Prober) event(c *container, reason, message string) {
	if p.config.Event != nil {
		p.config.Event(c.pod, c.spec.Name, corev1.EventTypeWarning, reason, message)
	}
}

// once makes one attempt.
func (p *Prober) once(ctx context.Context, c *container, spec *corev1.Probe) (Result, string, error) {
	switch {
	case spec.Exec != nil:
		return p.exec(ctx, c, spec.Exec, timeout(spec))
	case spec.HTTPGet != nil:
		return p.httpGet(ctx, c, spec.HTTPGet, timeout(spec))
	case spec.TCPSocket != nil:
		return tcp(ctx, c, spec.TCPSocket, timeout(spec))
	case spec.GRPC != nil:
		return grpcHealth(ctx, c, spec.GRPC, timeout(spec))
	}
	return Unknown, "", fmt.Errorf("missing probe handler for %s:%s", c.pod.Namespace+"/"+c.pod.Name, c.spec.Name)
}

// port resolves a number or the name of one of the container's ports.
func port(c *corev1.Container, p intstr.IntOrString) (int, error) {
	n := p.IntValue()
	if p.Type == intstr.String {
		n = 0
		for i := range c.Ports {
			if c.Ports[i].Name == p.StrVal {
				n = int(c.Ports[i].ContainerPort)
				break
			}
		}
		if n == 0 {
			// A name may also be a number in quotes.
			var err error
			if n, err = strconv.Atoi(p.StrVal); err != nil {
				return 0, fmt.Errorf("port %s not found", p.StrVal)
			}
		}
	}
	if n <= 0 || n > 65535 {
		return 0, fmt.Errorf("invalid port number: %v", n)
	}
	return n, nil
}

func host(given, podIP string) string {
	if given != "" {
		return given
	}
	return podIP
}

func clip(b []byte) string {
	if len(b) > maxOutput {
		b = b[:maxOutput]
	}
	return string(b)
}
