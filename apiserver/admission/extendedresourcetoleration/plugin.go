package extendedresourcetoleration

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/periplus/periplus/apiserver/admission"
	"github.com/periplus/periplus/apiserver/validation"
)

// Name is the plug-in's.
const Name = "ExtendedResourceToleration"

type plugin struct{}

var _ admission.Mutator = plugin{}

// New returns the plug-in.
func New() admission.Plugin { return plugin{} }

func (plugin) Name() string { return Name }

// Admit implements admission.Mutator.
func (plugin) Admit(_ context.Context, a *admission.Attributes) error {
	pod, ok := a.Pod(admission.Create, admission.Update)
	if !ok {
		return nil
	}
	asked := sets.New[string]()
	for _, list := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range list {
			for name := range list[i].Resources.Requests {
				if validation.IsExtendedResource(string(name)) {
					asked.Insert(string(name))
				}
			}
		}
	}
	for _, name := range sets.List(asked) {
		tolerate(pod, corev1.Toleration{Key: name, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule})
	}
	return nil
}

// tolerate adds a toleration, or lets it replace the one that it matches.
func tolerate(pod *corev1.Pod, t corev1.Toleration) {
	i := slices.IndexFunc(pod.Spec.Tolerations, func(have corev1.Toleration) bool { return have.MatchToleration(&t) })
	switch {
	case i < 0:
		pod.Spec.Tolerations = append(pod.Spec.Tolerations, t)
	case !apiequality.Semantic.DeepEqual(pod.Spec.Tolerations[i], t):
		pod.Spec.Tolerations[i] = t
	}
}
