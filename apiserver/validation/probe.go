package validation

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func livenessProbe(e *errorList, p *corev1.Probe, at *field.Path) {
	if p == nil {
		return
	}
	probe(e, p, at)
	if p.SuccessThreshold != 1 {
		e.invalid(at.Child("successThreshold"), p.SuccessThreshold, "must be 1")
	}
}

func readinessProbe(e *errorList, p *corev1.Probe, at *field.Path) {
	if p == nil {
		return
	}
	probe(e, p, at)
	if p.TerminationGracePeriodSeconds != nil {
		e.invalid(at.Child("terminationGracePeriodSeconds"), p.TerminationGracePeriodSeconds, "must not be set for readinessProbes")
	}
}

func probe(e *errorList, p *corev1.Probe, at *field.Path) {
	handlers(e, at, []handler{
		{p.Exec != nil, "exec", func(at *field.Path) { execAction(e, p.Exec, at) }},
		{p.HTTPGet != nil, "httpGet", func(at *field.Path) { httpGet(e, p.HTTPGet, at) }},
		{p.TCPSocket != nil, "tcpSocket", func(at *field.Path) { e.add(PortNumOrName(p.TCPSocket.Port, at.Child("port"))...) }},
		{p.GRPC != nil, "grpc", func(at *field.Path) { e.add(PortNumOrName(intstr.FromInt32(p.GRPC.Port), at.Child("port"))...) }},
	})
	e.nonnegativeChild(at, "initialDelaySeconds", int64(p.InitialDelaySeconds))
	e.nonnegativeChild(at, "timeoutSeconds", int64(p.TimeoutSeconds))
	e.nonnegativeChild(at, "periodSeconds", int64(p.PeriodSeconds))
	e.nonnegativeChild(at, "successThreshold", int64(p.SuccessThreshold))
	e.nonnegativeChild(at, "failureThreshold", int64(p.FailureThreshold))
	if grace := p.TerminationGracePeriodSeconds; grace != nil && *grace <= 0 {
		e.invalid(at.Child("terminationGracePeriodSeconds"), *grace, "must be greater than 0")
	}
}

// lifecycle checks a container's hooks; grace is the pod's grace period.
func lifecycle(e *errorList, l *corev1.Lifecycle, grace *int64, at *field.Path) {
	hook := func(h *corev1.LifecycleHandler, at *field.Path) {
		if h == nil {
			return
		}
		handlers(e, at, []handler{
			{h.Exec != nil, "exec", func(at *field.Path) { execAction(e, h.Exec, at) }},
			{h.HTTPGet != nil, "httpGet", func(at *field.Path) { httpGet(e, h.HTTPGet, at) }},
			{h.TCPSocket != nil, "tcpSocket", func(at *field.Path) { e.add(PortNumOrName(h.TCPSocket.Port, at.Child("port"))...) }},
			{h.Sleep != nil, "sleep", func(at *field.Path) {
				if grace != nil && (h.Sleep.Seconds < 0 || h.Sleep.Seconds > *grace) {
					e.invalid(at, h.Sleep.Seconds, fmt.Sprintf("must be non-negative and less than terminationGracePeriodSeconds (%d)", *grace))
				}
			}},
		})
	}
	hook(l.PostStart, at.Child("postStart"))
	hook(l.PreStop, at.Child("preStop"))
}

// A handler is one member of the union of probe and hook actions.
type handler struct {
	present bool
	field   string
	check   func(at *field.Path)
}

func handlers(e *errorList, at *field.Path, all []handler) {
	found := false
	for _, h := range all {
		switch {
		case !h.present:
		case found:
			e.forbidden(at.Child(h.field), "may not specify more than 1 handler type")
		default:
			found = true
			h.check(at.Child(h.field))
		}
	}
	if !found {
		e.required(at, "must specify a handler type")
	}
}

func execAction(e *errorList, a *corev1.ExecAction, at *field.Path) {
	if len(a.Command) == 0 {
		e.required(at.Child("command"), "")
	}
}

func httpGet(e *errorList, a *corev1.HTTPGetAction, at *field.Path) {
	needed(e, at, "path", a.Path)
	e.add(PortNumOrName(a.Port, at.Child("port"))...)
	oneOfOrEmpty(e, at.Child("scheme"), a.Scheme, corev1.URISchemeHTTP, corev1.URISchemeHTTPS)
	for _, h := range a.HTTPHeaders {
		invalidChild(e, at, "httpHeaders", h.Name, validation.IsHTTPHeaderName(h.Name))
	}
}
