package apiextensions

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/periplus/periplus/apiserver/registry"
)

// Resources lists the kinds of the group.
func Resources(_ registry.Env) []*registry.Resource {
	return []*registry.Resource{
		customResourceDefinitions(),
	}
}

// version is the group and version in which the kinds are stored.
var version = apiextensionsv1.SchemeGroupVersion
