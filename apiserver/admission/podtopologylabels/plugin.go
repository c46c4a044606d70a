package podtopologylabels

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/periplus/periplus/apiserver/admission"
	"github.com/periplus/periplus/apiserver/registry"
)

// Name is the plug-in's.
const Name = "PodTopologyLabels"

var (
	nodes = corev1.SchemeGroupVersion.WithResource("nodes")
	// copied are the labels of nodes that their pods get.
	copied = []string{corev1.LabelTopologyZone, corev1.LabelTopologyRegion}
)

type plugin struct{ objects registry.Reader }

var _ admission.Mutator = plugin{}

// New returns the plug-in.
func New(objects registry.Reader) admission.Plugin { return plugin{objects} }

func (plugin) Name() string { return Name }

// Admit implements admission.Mutator. A binding hands its labels on to the pod.
func (p plugin) Admit(_ context.Context, a *admission.Attributes) error {
	if a.Operation != admission.Create {
		return nil
	}
	switch o := a.Object.(type) {
	case *corev1.Pod:
		if a.Subresource != "" || o.Spec.NodeName == "" {
			return nil
		}
		return p.label(o.Spec.NodeName, &o.Labels)
	case *corev1.Binding:
		if o.Target.Kind != "Node" {
			return nil
		}
		return p.label(o.Target.Name, &o.Labels)
	}
	return nil
}

// label writes a node's labels over the others.
func (p plugin) label(node string, labels *map[string]string) error {
	obj, err := p.objects.Get(nodes, "", node)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, key := range copied {
		value, ok := obj.(*corev1.Node).Labels[key]
		if !ok {
			continue
		}
		if *labels == nil {
			*labels = map[string]string{}
		}
		(*labels)[key] = value
	}
	return nil
}
