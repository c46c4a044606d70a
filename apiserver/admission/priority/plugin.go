package priority

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/periplus/periplus/apiserver/admission"
	"github.com/periplus/periplus/apiserver/registry"
)

var classes = schedulingv1.SchemeGroupVersion.WithResource("priorityclasses")

type plugin struct{ objects registry.Reader }

var (
	_ admission.Mutator   = plugin{}
	_ admission.Validator = plugin{}
)

// New returns the plug-in.
func New(objects registry.Reader) admission.Plugin { return plugin{objects} }

func (plugin) Name() string { return "Priority" }

// Admit implements admission.Mutator.
func (p plugin) Admit(_ context.Context, a *admission.Attributes) error {
	pod, ok := a.Object.(*corev1.Pod)
	if !ok || a.Subresource != "" || a.Operation != admission.Create {
		return nil
	}
	value, policy := int32(0), corev1.PreemptLowerPriority
	class, err := p.class(pod.Spec.PriorityClassName)
	if err != nil {
		return apierrors.NewForbidden(a.Resource.GroupResource(), a.Name, err)
	}
	if class != nil {
		pod.Spec.PriorityClassName = class.Name
		value = class.Value
		if class.PreemptionPolicy != nil {
			policy = *class.PreemptionPolicy
		}
	}
	if pod.Spec.Priority != nil && *pod.Spec.Priority != value {
		return apierrors.NewForbidden(a.Resource.GroupResource(), a.Name,
			fmt.Errorf("the integer value of priority (%d) must not be provided in pod spec; priority admission controller computed %d from the given PriorityClass name", *pod.Spec.Priority, value))
	}
	if pod.Spec.PreemptionPolicy != nil && *pod.Spec.PreemptionPolicy != policy {
		return apierrors.NewForbidden(a.Resource.GroupResource(), a.Name,
			fmt.Errorf("the string value of PreemptionPolicy (%s) must not be provided in pod spec; priority admission controller computed %s from the given PriorityClass name", *pod.Spec.PreemptionPolicy, policy))
	}
	pod.Spec.Priority, pod.Spec.PreemptionPolicy = &value, &policy
	return nil
}

// class returns the named class, for "" the global default or nil.
func (p plugin) class(name string) (*schedulingv1.PriorityClass, error) {
	if name != "" {
		obj, err := p.objects.Get(classes, "", name)
		if apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("no PriorityClass with name %v was found", name)
		}
		if err != nil {
			return nil, err
		}
		return obj.(*schedulingv1.PriorityClass), nil
	}
	list, err := p.objects.List(classes, "")
	if err != nil {
		return nil, err
	}
	var best *schedulingv1.PriorityClass
	for _, obj := range list {
		// Of several defaults the lowest counts, as upstream.
		if c := obj.(*schedulingv1.PriorityClass); c.GlobalDefault && (best == nil || c.Value < best.Value) {
			best = c
		}
	}
	return best, nil
}

// Validate implements admission.Validator: there is one global default.
func (p plugin) Validate(_ context.Context, a *admission.Attributes) error {
	class, ok := a.Object.(*schedulingv1.PriorityClass)
	if !ok || !class.GlobalDefault || a.Operation == admission.Delete {
		return nil
	}
	other, err := p.class("")
	if err != nil {
		return err
	}
	if other != nil && other.Name != class.Name {
		return apierrors.NewForbidden(a.Resource.GroupResource(), a.Name,
			fmt.Errorf("PriorityClass %v is already marked as default. Only one default can exist", other.Name))
	}
	return nil
}
