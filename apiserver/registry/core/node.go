package core

import (
	"context"
	"fmt"
	"regexp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	netutils "k8s.io/utils/net"

	"github.com/periplus/periplus/apiserver/defaults"
	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
	"github.com/periplus/periplus/apiserver/validation"
)

var nodeHalves = kind.Split(func(obj *corev1.Node) (*corev1.NodeSpec, *corev1.NodeStatus) {
	return &obj.Spec, &obj.Status
})

func nodes() *registry.Resource {
	s := registry.Funcs[*corev1.Node]{
		DefaultFunc: defaultNode,
		// A new node may bring its status along: kubelets register with it.
		PrepareCreate: func(_ context.Context, node *corev1.Node) { dropNodeFields(node, nil) },
		PrepareUpdate: func(_ context.Context, node, old *corev1.Node) {
			nodeHalves.KeepStatus(node, old)
			dropNodeFields(node, old)
		},
		ValidateCreate: validateNode,
		ValidateChange: func(ctx context.Context, node, old *corev1.Node) field.ErrorList {
			return append(validateNode(ctx, node), validateNodeUpdate(ctx, node, old)...)
		},
		WarningsFunc: nodeWarnings,
	}
	status := nodeHalves.Status()
	status.DefaultFunc = defaultNode
	status.PrepareUpdate = func(_ context.Context, node, old *corev1.Node) {
		node.Spec = old.Spec
		if old.Status.Config == nil {
			node.Status.Config = nil
		}
	}
	status.WarningsFunc = nodeWarnings
	status.ValidateChange = validateNodeUpdate
	return &registry.Resource{
		GVR:              version.WithResource("nodes"),
		Kind:             "Node",
		Singular:         "node",
		ShortNames:       []string{"no"},
		New:              kind.Make[corev1.Node],
		NewList:          kind.Make[corev1.NodeList],
		StoragePrefix:    "minions",
		Strategy:         s,
		Status:           status,
		SelectableFields: []string{"spec.unschedulable"},
		Fields: func(obj runtime.Object) fields.Set {
			return fields.Set{"spec.unschedulable": fmt.Sprint(obj.(*corev1.Node).Spec.Unschedulable)}
		},
	}
}

func defaultNode(node *corev1.Node) {
	defaults.Resources(node.Status.Capacity)
	defaults.Resources(node.Status.Allocatable)
	if node.Status.Allocatable == nil && node.Status.Capacity != nil {
		node.Status.Allocatable = node.Status.Capacity.DeepCopy()
	}
	// podCIDR is the first of podCIDRs; either alone sets the other.
	switch spec := &node.Spec; {
	case spec.PodCIDR == "" && len(spec.PodCIDRs) > 0:
		spec.PodCIDR = spec.PodCIDRs[0]
	case spec.PodCIDR != "" && (len(spec.PodCIDRs) == 0 || spec.PodCIDRs[0] != spec.PodCIDR):
		spec.PodCIDRs = []string{spec.PodCIDR}
	}
}

func validateNode(_ context.Context, node *corev1.Node) field.ErrorList {
	errs := avoidedPods(node.Annotations)
	errs = append(errs, validation.Taints(node.Spec.Taints, field.NewPath("metadata", "taints"))...)
	if swap := node.Status.NodeInfo.Swap; swap != nil && swap.Capacity != nil && *swap.Capacity <= 0 {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "nodeSwapStatus", "capacity"), *swap.Capacity, "must be greater than zero"))
	}
	errs = append(errs, nodeStatus(&node.Status)...)
	at := field.NewPath("spec", "podCIDRs")
	for i, cidr := range node.Spec.PodCIDRs {
		errs = append(errs, validation.LegacyCIDR(at.Index(i), cidr, nil)...)
	}
	if len(node.Spec.PodCIDRs) > 1 {
		dual, err := netutils.IsDualStackCIDRStrings(node.Spec.PodCIDRs)
		if err != nil {
			errs = append(errs, field.InternalError(at, fmt.Errorf("invalid PodCIDRs. failed to check with dual stack with error:%w", err)))
		}
		if !dual || len(node.Spec.PodCIDRs) > 2 {
			errs = append(errs, field.Invalid(at, node.Spec.PodCIDRs, "may specify no more than one CIDR for each IP family"))
		}
	}
	return errs
}

func validateNodeUpdate(_ context.Context, node, old *corev1.Node) field.ErrorList {
	errs := append(avoidedPods(node.Annotations), nodeStatus(&node.Status)...)
	seen := map[corev1.NodeAddress]bool{}
	for i, address := range node.Status.Addresses {
		if seen[address] {
			errs = append(errs, field.Duplicate(field.NewPath("status", "addresses").Index(i), address))
		}
		seen[address] = true
	}
	spec := field.NewPath("spec")
	if before := old.Spec.PodCIDRs; len(before) > 0 && !validation.Equal(before, node.Spec.PodCIDRs) {
		errs = append(errs, field.Forbidden(spec.Child("podCIDRs"), `node updates may not change podCIDR except from "" to valid`))
	}
	switch before, now := old.Spec.ProviderID, node.Spec.ProviderID; {
	case before == "" || before == now:
	case now == "":
		errs = append(errs, field.Invalid(spec.Child("providerID"), nil, "field cannot be cleared once set"))
	default:
		errs = append(errs, field.Invalid(spec.Child("providerID"), nil, "field cannot be modified once set"))
	}
	errs = append(errs, nodeConfig(node)...)
	errs = append(errs, validation.Taints(node.Spec.Taints, field.NewPath("metadata", "taints"))...)
	if node.Spec.DoNotUseExternalID != old.Spec.DoNotUseExternalID {
		errs = append(errs, field.Forbidden(spec.Child("externalID"), "may not be updated"))
	}
	return errs
}

func nodeStatus(status *corev1.NodeStatus) field.ErrorList {
	var errs field.ErrorList
	for name, list := range map[string]corev1.ResourceList{"capacity": status.Capacity, "allocatable": status.Allocatable} {
		for resource, quantity := range list {
			errs = append(errs, validation.Quantity(resource, quantity, field.NewPath("status", name, string(resource)))...)
		}
	}
	return append(errs, declaredFeatures(status.DeclaredFeatures, field.NewPath("status", "declaredFeatures"))...)
}

var featureName = regexp.MustCompile(`^[A-Z][a-zA-Z0-9]*(\/[a-zA-Z][a-zA-Z0-9]*)*$`)

// declaredFeatures checks a sorted list of feature names (KEP-5328).
func declaredFeatures(features []string, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, f := range features {
		switch {
		case len(f) > utilvalidation.DNS1123SubdomainMaxLength:
			errs = append(errs, field.Invalid(at.Index(i), f, fmt.Sprintf("invalid feature name %q: must be no more than %d characters", f, utilvalidation.DNS1123SubdomainMaxLength)))
		case !featureName.MatchString(f):
			errs = append(errs, field.Invalid(at.Index(i), f, fmt.Sprintf("invalid feature name %q: must start with an UpperCamelCase segment, with subsequent segments separated by '/' (e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric characters and slashes", f)))
		}
		if i == 0 {
			continue
		}
		switch before := features[i-1]; {
		case before == f:
			errs = append(errs, field.Duplicate(at.Index(i), f))
		case before > f:
			errs = append(errs, field.Invalid(at.Index(i), f, "list must be sorted alphabetically"))
		}
	}
	return errs
}
