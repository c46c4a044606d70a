package crd

import (
	"fmt"
	"math"
	"strings"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/registry"
)

// pathOf splits ".spec.replicas".
func pathOf(path string) []string { return strings.Split(strings.TrimPrefix(path, "."), ".") }

// scale returns the access to the replica counts of a version, nil if it has none.
func (v *version) scale() *registry.Scale {
	if v.spec.Subresources == nil || v.spec.Subresources.Scale == nil {
		return nil
	}
	paths := v.spec.Subresources.Scale
	return &registry.Scale{
		Get: func(object runtime.Object) (*autoscalingv1.Scale, error) {
			obj := object.(*Object)
			wanted, _, err := unstructured.NestedInt64(obj.Content, pathOf(paths.SpecReplicasPath)...)
			if err != nil {
				return nil, apierrors.NewBadRequest(err.Error())
			}
			current, _, err := unstructured.NestedInt64(obj.Content, pathOf(paths.StatusReplicasPath)...)
			if err != nil {
				return nil, apierrors.NewBadRequest(err.Error())
			}
			selector := ""
			if paths.LabelSelectorPath != nil && *paths.LabelSelectorPath != "" {
				if selector, _, err = unstructured.NestedString(obj.Content, pathOf(*paths.LabelSelectorPath)...); err != nil {
					return nil, apierrors.NewBadRequest(err.Error())
				}
			}
			return &autoscalingv1.Scale{
				ObjectMeta: metav1.ObjectMeta{
					Name: obj.Name, Namespace: obj.Namespace, UID: obj.UID,
					ResourceVersion: obj.ResourceVersion, CreationTimestamp: obj.CreationTimestamp,
				},
				Spec:   autoscalingv1.ScaleSpec{Replicas: int32(wanted)},
				Status: autoscalingv1.ScaleStatus{Replicas: int32(current), Selector: selector},
			}, nil
		},
		Set: func(object runtime.Object, replicas int32) error {
			return unstructured.SetNestedField(object.(*Object).Content, int64(replicas), pathOf(paths.SpecReplicasPath)...)
		},
	}
}

// validateScale checks the fields that /scale reads; spec says whether the wanted count, too.
func (s strategy) validateScale(all map[string]any, spec bool) field.ErrorList {
	if s.v.spec.Subresources == nil || s.v.spec.Subresources.Scale == nil {
		return nil
	}
	paths := s.v.spec.Subresources.Scale
	var errs field.ErrorList
	count := func(path string) {
		n, _, err := unstructured.NestedInt64(all, pathOf(path)...)
		switch {
		case err != nil:
			errs = append(errs, field.Invalid(field.NewPath(path), n, err.Error()))
		case n < 0:
			errs = append(errs, field.Invalid(field.NewPath(path), n, "should be a non-negative integer"))
		case n > math.MaxInt32:
			errs = append(errs, field.Invalid(field.NewPath(path), n, fmt.Sprintf("should be less than or equal to %v", math.MaxInt32)))
		}
	}
	if spec {
		count(paths.SpecReplicasPath)
	}
	count(paths.StatusReplicasPath)
	if paths.LabelSelectorPath != nil {
		if text, _, err := unstructured.NestedString(all, pathOf(*paths.LabelSelectorPath)...); err != nil {
			errs = append(errs, field.Invalid(field.NewPath(*paths.LabelSelectorPath), text, err.Error()))
		}
	}
	return errs
}
