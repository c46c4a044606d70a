package webhook

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/periplus/periplus/apiserver/admission"
)

// decoded returns both objects in the version that the hook wants, as JSON values.
func decoded(a *admission.Attributes, m *Match) (object, old runtime.Object, err error) {
	one, two, err := forms(a, m)
	if err != nil {
		return nil, nil, err
	}
	if object, err = values(one); err != nil {
		return nil, nil, err
	}
	old, err = values(two)
	return object, old, err
}

func values(data []byte) (runtime.Object, error) {
	if data == nil {
		return nil, nil
	}
	out := &unstructured.Unstructured{}
	if err := out.UnmarshalJSON(data); err != nil {
		return nil, err
	}
	return out, nil
}
