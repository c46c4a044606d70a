package runtimeclass

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/periplus/periplus/apiserver/admission"
	"github.com/periplus/periplus/apiserver/registry"
)

var (
	classes = nodev1.SchemeGroupVersion.WithResource("runtimeclasses")

	errOther = errors.New("pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")
	errNone  = errors.New("pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead")
)

type plugin struct{ objects registry.Reader }

var (
	_ admission.Mutator   = plugin{}
	_ admission.Validator = plugin{}
)

// New returns the plug-in.
func New(objects registry.Reader) admission.Plugin { return plugin{objects} }

func (plugin) Name() string { return "RuntimeClass" }

// subject returns the new pod, nil if a is about something else, and its class, if it has one.
func (p plugin) subject(a *admission.Attributes) (*corev1.Pod, *nodev1.RuntimeClass, error) {
	pod, ok := a.Object.(*corev1.Pod)
	if !ok || a.Subresource != "" || a.Operation != admission.Create {
		return nil, nil, nil
	}
	if pod.Spec.RuntimeClassName == nil {
		return pod, nil, nil
	}
	obj, err := p.objects.Get(classes, "", *pod.Spec.RuntimeClassName)
	if apierrors.IsNotFound(err) {
		return nil, nil, fmt.Errorf("pod rejected: RuntimeClass %q not found", *pod.Spec.RuntimeClassName)
	}
	if err != nil {
		return nil, nil, err
	}
	return pod, obj.(*nodev1.RuntimeClass), nil
}

// Admit implements admission.Mutator.
func (p plugin) Admit(_ context.Context, a *admission.Attributes) error {
	pod, class, err := p.subject(a)
	if pod == nil || class == nil || err != nil {
		return err
	}
	if o := class.Overhead; o != nil {
		if len(pod.Spec.Overhead) > 0 && !apiequality.Semantic.DeepEqual(o.PodFixed, pod.Spec.Overhead) {
			return errOther
		}
		pod.Spec.Overhead = o.PodFixed.DeepCopy()
	}
	if class.Scheduling == nil {
		return nil
	}
	for key, wanted := range class.Scheduling.NodeSelector {
		if has, ok := pod.Spec.NodeSelector[key]; ok && has != wanted {
			return fmt.Errorf("conflict: runtimeClass.scheduling.nodeSelector[%s] = %s; pod.spec.nodeSelector[%s] = %s", key, wanted, key, has)
		}
		if pod.Spec.NodeSelector == nil {
			pod.Spec.NodeSelector = map[string]string{}
		}
		pod.Spec.NodeSelector[key] = wanted
	}
	pod.Spec.Tolerations = merge(pod.Spec.Tolerations, class.Scheduling.Tolerations)
	return nil
}

// merge adds tolerations that others do not include.
func merge(list, more []corev1.Toleration) []corev1.Toleration {
	all := slices.Concat(list, more)
	var out []corev1.Toleration
	for i := range all {
		included := slices.ContainsFunc(out, func(t corev1.Toleration) bool { return includes(&t, &all[i]) }) ||
			slices.ContainsFunc(all[i+1:], func(t corev1.Toleration) bool {
				return includes(&t, &all[i]) && !apiequality.Semantic.DeepEqual(t, all[i])
			})
		if !included {
			out = append(out, all[i])
		}
	}
	return out
}

// includes reports whether one tolerates all that other does.
func includes(one, other *corev1.Toleration) bool {
	if apiequality.Semantic.DeepEqual(one, other) {
		return true
	}
	if one.Key != other.Key && (one.Key != "" || one.Operator != corev1.TolerationOpExists) || one.Effect != "" && one.Effect != other.Effect {
		return false
	}
	if one.Effect == corev1.TaintEffectNoExecute && one.TolerationSeconds != nil &&
		(other.TolerationSeconds == nil || *one.TolerationSeconds < *other.TolerationSeconds) {
		return false
	}
	switch one.Operator {
	case corev1.TolerationOpEqual, "":
		return (other.Operator == corev1.TolerationOpEqual || other.Operator == "") && one.Value == other.Value
	case corev1.TolerationOpExists:
		return true
	}
	return false
}

// Validate implements admission.Validator.
func (p plugin) Validate(_ context.Context, a *admission.Attributes) error {
	pod, class, err := p.subject(a)
	switch {
	case pod == nil || err != nil:
		return err
	case class != nil && class.Overhead != nil:
		if !apiequality.Semantic.DeepEqual(class.Overhead.PodFixed, pod.Spec.Overhead) {
			return errOther
		}
	case pod.Spec.Overhead != nil:
		return errNone
	}
	return nil
}
