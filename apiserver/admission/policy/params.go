package policy

import (
	"errors"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/periplus/periplus/apiserver/admission"
)

// Params returns the objects that a binding refers to; a policy is evaluated with each.
func Params(objects Objects, a *admission.Attributes, kind *admissionregistrationv1.ParamKind, ref *admissionregistrationv1.ParamRef) ([]runtime.Object, error) {
	if kind == nil || ref == nil {
		return nothing, nil
	}
	gv, err := schema.ParseGroupVersion(kind.APIVersion)
	if err != nil {
		return nil, err
	}
	gvr, namespaced, ok := objects.ResourceOf(gv.WithKind(kind.Kind))
	if !ok {
		return nil, fmt.Errorf("failed to find resource referenced by paramKind: '%v'", gv.WithKind(kind.Kind))
	}
	namespace := ref.Namespace
	switch {
	case !namespaced && namespace != "":
		return nil, fmt.Errorf("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
	case namespaced && namespace == "":
		if namespace = a.Namespace; namespace == "" {
			return nil, fmt.Errorf("cannot use namespaced paramRef in policy binding that matches cluster-scoped resources")
		}
	}
	found, err := find(objects, gvr, namespace, ref)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 && (ref.ParameterNotFoundAction == nil || *ref.ParameterNotFoundAction == admissionregistrationv1.DenyAction) {
		return nil, errors.New("no params found for policy binding with `Deny` parameterNotFoundAction")
	}
	return found, nil
}

func find(objects Objects, gvr schema.GroupVersionResource, namespace string, ref *admissionregistrationv1.ParamRef) ([]runtime.Object, error) {
	if ref.Name != "" {
		obj, err := objects.Get(gvr, namespace, ref.Name)
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		return []runtime.Object{obj}, nil
	}
	selector := admission.Selector(ref.Selector)
	list, err := objects.List(gvr, namespace)
	if err != nil {
		return nil, err
	}
	var out []runtime.Object
	for _, obj := range list {
		if m, ok := obj.(metav1.ObjectMetaAccessor); ok && selector.Matches(labels.Set(m.GetObjectMeta().GetLabels())) {
			out = append(out, obj)
		}
	}
	return out, nil
}
