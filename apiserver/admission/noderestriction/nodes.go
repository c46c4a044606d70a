package noderestriction

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/periplus/periplus/apiserver/admission"
)

func ownNode(node string, a *admission.Attributes) error {
	if name := nameOf(a); name != node {
		return fmt.Errorf("node %q is not allowed to modify node %q", node, name)
	}
	if a.Operation != admission.Create && a.Operation != admission.Update {
		return nil
	}
	now, ok := a.Object.(*corev1.Node)
	if !ok {
		return unexpectedType(a.Object)
	}
	if a.Operation == admission.Create {
		if now.Spec.ConfigSource != nil { //nolint:staticcheck // it is refused
			return fmt.Errorf("node %q is not allowed to create pods with a non-nil configSource", node)
		}
		if forbidden := forbiddenLabels(nil, now.Labels); len(forbidden) > 0 {
			return fmt.Errorf("node %q is not allowed to set the following labels: %s", node, strings.Join(forbidden, ", "))
		}
		return nil
	}
	old, ok := a.Old.(*corev1.Node)
	if !ok {
		return unexpectedType(a.Old)
	}
	if now.Spec.ConfigSource != nil && !equality.Semantic.DeepEqual(now.Spec.ConfigSource, old.Spec.ConfigSource) { //nolint:staticcheck // it is refused
		return fmt.Errorf("node %q is not allowed to update configSource to a new non-nil configSource", node)
	}
	if !equality.Semantic.DeepEqual(old.Spec.Taints, now.Spec.Taints) {
		return fmt.Errorf("node %q is not allowed to modify taints", node)
	}
	if !equality.Semantic.DeepEqual(old.OwnerReferences, now.OwnerReferences) {
		return fmt.Errorf("node %q is not allowed to modify ownerReferences", node)
	}
	if forbidden := forbiddenLabels(old.Labels, now.Labels); len(forbidden) > 0 {
		return fmt.Errorf("is not allowed to modify labels: %s", strings.Join(forbidden, ", "))
	}
	return nil
}

// kubeletLabels are those of Kubernetes' own that a kubelet may set.
var kubeletLabels = sets.New(
	corev1.LabelHostname, corev1.LabelTopologyZone, corev1.LabelTopologyRegion,
	corev1.LabelFailureDomainBetaZone, corev1.LabelFailureDomainBetaRegion,
	corev1.LabelInstanceType, corev1.LabelInstanceTypeStable, corev1.LabelOSStable, corev1.LabelArchStable,
	"beta.kubernetes.io/os", "beta.kubernetes.io/arch",
)

// forbiddenLabels lists what was changed and may not be (KEP-279), sorted.
func forbiddenLabels(old, now map[string]string) []string {
	var out []string
	check := func(label string) {
		before, had := old[label]
		after, has := now[label]
		if had == has && before == after {
			return
		}
		namespace, _, qualified := strings.Cut(label, "/")
		if !qualified || kubeletLabels.Has(label) {
			return
		}
		within := func(domain string) bool { return namespace == domain || strings.HasSuffix(namespace, "."+domain) }
		switch {
		case within(corev1.LabelNamespaceNodeRestriction):
		case within(corev1.LabelNamespaceSuffixKubelet), within(corev1.LabelNamespaceSuffixNode):
			return
		case !within("kubernetes.io") && !within("k8s.io"):
			return
		}
		out = append(out, label)
	}
	for label := range old {
		check(label)
	}
	for label := range now {
		if _, had := old[label]; !had {
			check(label)
		}
	}
	slices.Sort(out)
	return out
}
