package limitpodhardantiaffinitytopology

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/periplus/periplus/apiserver/admission"
)

// Name is the plug-in's.
const Name = "LimitPodHardAntiAffinityTopology"

type plugin struct{}

var _ admission.Validator = plugin{}

// New returns the plug-in.
func New() admission.Plugin { return plugin{} }

func (plugin) Name() string { return Name }

// Validate implements admission.Validator.
func (plugin) Validate(_ context.Context, a *admission.Attributes) error {
	pod, ok := a.Pod(admission.Create, admission.Update)
	if !ok || pod.Spec.Affinity == nil || pod.Spec.Affinity.PodAntiAffinity == nil {
		return nil
	}
	for _, term := range pod.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
		if term.TopologyKey != corev1.LabelHostname {
			return fmt.Errorf("affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey %v but only key %v is allowed", term.TopologyKey, corev1.LabelHostname)
		}
	}
	return nil
}
