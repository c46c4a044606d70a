package denyserviceexternalips

import (
	"context"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/periplus/periplus/apiserver/admission"
)

// Name is the plug-in's.
const Name = "DenyServiceExternalIPs"

type plugin struct{}

var _ admission.Validator = plugin{}

// New returns the plug-in.
func New() admission.Plugin { return plugin{} }

func (plugin) Name() string { return Name }

// Validate implements admission.Validator.
func (plugin) Validate(_ context.Context, a *admission.Attributes) error {
	s, ok := a.Object.(*corev1.Service)
	if !ok || a.Subresource != "" || a.Operation != admission.Create && a.Operation != admission.Update {
		return nil
	}
	var had []string
	if old, ok := a.Old.(*corev1.Service); ok {
		had = old.Spec.ExternalIPs
	}
	if slices.ContainsFunc(s.Spec.ExternalIPs, func(ip string) bool { return !slices.Contains(had, ip) }) {
		return errors.New("Use of external IPs is denied by admission control") //nolint:staticcheck // upstream's words
	}
	return nil
}
