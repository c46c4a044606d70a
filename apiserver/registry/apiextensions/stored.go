package apiextensions

import (
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsv1beta1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

// conversions is made when the first definition of v1beta1 is found.
var conversions = sync.OnceValue(func() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{apiextensions.AddToScheme, apiextensionsv1beta1.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(s); err != nil {
			panic(err) // the lists are constant
		}
	}
	return s
})

// storedByUpstream is the version in which upstream stores definitions.
func storedByUpstream() registry.Served {
	return registry.Served{
		GV:      apiextensionsv1beta1.SchemeGroupVersion,
		New:     kind.Make[apiextensionsv1beta1.CustomResourceDefinition],
		NewList: kind.Make[apiextensionsv1beta1.CustomResourceDefinitionList],
		To: func(older runtime.Object) (runtime.Object, error) {
			s, internal, out := conversions(), &apiextensions.CustomResourceDefinition{}, &apiextensionsv1.CustomResourceDefinition{}
			s.Default(older)
			if err := s.Convert(older, internal, nil); err != nil {
				return nil, err
			}
			if err := s.Convert(internal, out, nil); err != nil {
				return nil, err
			}
			s.Default(out)
			return out, nil
		},
	}
}
