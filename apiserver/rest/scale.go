package rest

import (
	"fmt"
	"net/http"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/registry"
)

var scaleKind = autoscalingv1.SchemeGroupVersion.WithKind("Scale")

func (e *endpoint) decodeScale(w http.ResponseWriter, r *http.Request, validation string) (*autoscalingv1.Scale, error) {
	validation = fieldValidation(validation)
	body, err := readBody(w, r)
	if err != nil {
		return nil, err
	}
	obj, err := e.server.codecs.decodeBody(r, body, scaleKind, &autoscalingv1.Scale{}, validation)
	if err != nil {
		return nil, err
	}
	e.server.codecs.auditRequest(r, obj)
	s, ok := obj.(*autoscalingv1.Scale)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("expected input object type to be Scale, but %T", obj))
	}
	return s, checkScale(s)
}

func checkScale(s *autoscalingv1.Scale) error {
	if s.Spec.Replicas < 0 {
		return apierrors.NewInvalid(scaleKind.GroupKind(), s.Name, field.ErrorList{
			field.Invalid(field.NewPath("spec", "replicas"), s.Spec.Replicas, "must be greater than or equal to 0")})
	}
	return nil
}

func setScale(view *registry.Scale, obj, scale runtime.Object) error {
	s, ok := scale.(*autoscalingv1.Scale)
	if !ok {
		return apierrors.NewBadRequest(fmt.Sprintf("expected input object type to be Scale, but %T", scale))
	}
	if err := checkScale(s); err != nil {
		return err
	}
	return view.Set(obj, s.Spec.Replicas)
}
