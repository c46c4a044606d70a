package core

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/validation"
)

// Dynamic configuration of kubelets (KEP-281) was removed. What old objects have of
// it stays and is checked; new objects get none.

func dropNodeFields(node, old *corev1.Node) {
	if old == nil {
		node.Spec.ConfigSource, node.Status.Config = nil, nil //nolint:staticcheck // deprecated: stays in old objects
	} else if old.Spec.ConfigSource == nil { //nolint:staticcheck // deprecated: stays in old objects
		node.Spec.ConfigSource = nil //nolint:staticcheck // deprecated: stays in old objects
	}
	if old == nil || old.Spec.PodPreemptionPolicy == nil {
		node.Spec.PodPreemptionPolicy = nil // alpha, off
	}
}

func nodeWarnings(_ context.Context, node, _ *corev1.Node) (list []string) {
	if node.Spec.ConfigSource != nil { //nolint:staticcheck // deprecated: stays in old objects
		list = append(list, "spec.configSource: the feature is removed")
	}
	if node.Spec.DoNotUseExternalID != "" {
		list = append(list, "spec.externalID: this field is deprecated, and is unused by Kubernetes")
	}
	for i, cidr := range node.Spec.PodCIDRs {
		list = append(list, validation.CIDRWarning(field.NewPath("spec", "podCIDRs").Index(i), cidr)...)
	}
	return list
}

func nodeConfig(node *corev1.Node) (errs field.ErrorList) {
	errs = configSource(node.Spec.ConfigSource, false, field.NewPath("spec", "configSource")) //nolint:staticcheck // deprecated: stays in old objects
	if c := node.Status.Config; c != nil {
		at := field.NewPath("status", "config")
		errs = append(errs, configSource(c.Assigned, true, at.Child("assigned"))...)
		errs = append(errs, configSource(c.Active, true, at.Child("active"))...)
		errs = append(errs, configSource(c.LastKnownGood, true, at.Child("lastKnownGood"))...)
	}
	return errs
}

// configSource checks where configuration comes from; a status tells which object
// it was exactly.
func configSource(s *corev1.NodeConfigSource, status bool, at *field.Path) (errs field.ErrorList) {
	if s == nil {
		return nil
	}
	m, at2 := s.ConfigMap, at.Child("configMap")
	if m == nil {
		return field.ErrorList{field.Invalid(at, s, "exactly one reference subfield must be non-nil")}
	}
	if status {
		for _, f := range []struct{ name, value string }{{"uid", string(m.UID)}, {"resourceVersion", m.ResourceVersion}} {
			if f.value == "" {
				errs = append(errs, field.Required(at2.Child(f.name), ""))
			}
		}
	} else {
		for _, f := range []struct{ name, value string }{{"uid", string(m.UID)}, {"resourceVersion", m.ResourceVersion}} {
			if f.value != "" {
				errs = append(errs, field.Forbidden(at2.Child(f.name), f.name+" must not be set in spec"))
			}
		}
	}
	if m.KubeletConfigKey == "" {
		errs = append(errs, field.Required(at2.Child("kubeletConfigKey"), ""))
	} else {
		errs = append(errs, validation.ConfigMapKey(m.KubeletConfigKey, at2.Child("kubeletConfigKey"))...)
	}
	if m.Name == "" {
		errs = append(errs, field.Required(at2.Child("name"), ""))
	} else {
		errs = append(errs, validation.DNSSubdomain(m.Name, at2.Child("name"))...)
	}
	if m.Namespace == "" {
		return append(errs, field.Required(at2.Child("namespace"), ""))
	}
	return append(errs, validation.DNSLabel(m.Namespace, at2.Child("namespace"))...)
}
