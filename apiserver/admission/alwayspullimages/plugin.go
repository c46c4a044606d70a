package alwayspullimages

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/admission"
)

// Name is the plug-in's.
const Name = "AlwaysPullImages"

type plugin struct{}

var (
	_ admission.Mutator   = plugin{}
	_ admission.Validator = plugin{}
)

// New returns the plug-in.
func New() admission.Plugin { return plugin{} }

func (plugin) Name() string { return Name }

// pod returns the pod that is made, or gets an image that it did not have.
func pod(a *admission.Attributes) *corev1.Pod {
	p, ok := a.Pod(admission.Create, admission.Update)
	if !ok {
		return nil
	}
	if old, ok := a.Old.(*corev1.Pod); ok && a.Operation == admission.Update && images(old).IsSuperset(images(p)) {
		return nil
	}
	return p
}

func images(p *corev1.Pod) sets.Set[string] {
	out := sets.New("") // of volumes
	admission.Images(&p.Spec, func(_ *field.Path, image string, _ *corev1.PullPolicy) { out.Insert(image) })
	return out
}

// Admit implements admission.Mutator.
func (plugin) Admit(_ context.Context, a *admission.Attributes) error {
	if p := pod(a); p != nil {
		admission.Images(&p.Spec, func(_ *field.Path, _ string, policy *corev1.PullPolicy) { *policy = corev1.PullAlways })
	}
	return nil
}

// Validate implements admission.Validator.
func (plugin) Validate(_ context.Context, a *admission.Attributes) error {
	p := pod(a)
	if p == nil {
		return nil
	}
	var errs []error
	admission.Images(&p.Spec, func(at *field.Path, _ string, policy *corev1.PullPolicy) {
		if *policy != corev1.PullAlways {
			errs = append(errs, apierrors.NewForbidden(a.Resource.GroupResource(), a.Name, field.NotSupported(at, *policy, []string{string(corev1.PullAlways)})))
		}
	})
	return utilerrors.NewAggregate(errs)
}
