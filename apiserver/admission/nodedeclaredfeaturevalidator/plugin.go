package nodedeclaredfeaturevalidator

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/component-helpers/nodedeclaredfeatures"

	"github.com/periplus/periplus/apiserver/admission"
	"github.com/periplus/periplus/apiserver/registry"
)

// Name is the plug-in's.
const Name = "NodeDeclaredFeatureValidator"

var (
	nodes = corev1.SchemeGroupVersion.WithResource("nodes")
	// served is the version of the API: features that every node of it has are not declared.
	served = version.MustParse("1.37.0")
)

type plugin struct{ objects registry.Reader }

var _ admission.Validator = plugin{}

// New returns the plug-in.
func New(objects registry.Reader) admission.Plugin { return plugin{objects} }

func (plugin) Name() string { return Name }

// Validate implements admission.Validator.
func (p plugin) Validate(_ context.Context, a *admission.Attributes) error {
	pod, ok := a.Object.(*corev1.Pod)
	old, had := a.Old.(*corev1.Pod)
	if !ok || !had || a.Operation != admission.Update || a.Subresource != "" && a.Subresource != "resize" || pod.Spec.NodeName == "" || pod.Generation == old.Generation {
		return nil
	}
	known := nodedeclaredfeatures.DefaultFramework
	needed, err := known.InferForPodUpdate(&nodedeclaredfeatures.PodInfo{Spec: &old.Spec, Status: &old.Status}, &nodedeclaredfeatures.PodInfo{Spec: &pod.Spec, Status: &pod.Status}, served)
	if err != nil {
		return fmt.Errorf("failed to infer pod capability requirements: %w", err)
	}
	if needed.IsEmpty() {
		return nil
	}
	obj, err := p.objects.Get(nodes, "", pod.Spec.NodeName)
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("node %q not found", pod.Spec.NodeName)
	}
	if err != nil {
		return fmt.Errorf("failed to get node %q: %w", pod.Spec.NodeName, err)
	}
	node := obj.(*corev1.Node)
	result, err := known.MatchNode(needed, node)
	if err != nil {
		return fmt.Errorf("failed to match pod requirements against node %q: %w", node.Name, err)
	}
	if !result.IsMatch {
		return fmt.Errorf("pod update requires features %s which are not available on node %q", strings.Join(result.UnsatisfiedRequirements, ", "), node.Name)
	}
	return nil
}
