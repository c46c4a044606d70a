package all

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/admissionregistration"
	"github.com/periplus/periplus/apiserver/registry/apiextensions"
	"github.com/periplus/periplus/apiserver/registry/apiregistration"
	"github.com/periplus/periplus/apiserver/registry/apps"
	"github.com/periplus/periplus/apiserver/registry/authentication"
	"github.com/periplus/periplus/apiserver/registry/authorization"
	"github.com/periplus/periplus/apiserver/registry/autoscaling"
	"github.com/periplus/periplus/apiserver/registry/batch"
	"github.com/periplus/periplus/apiserver/registry/certificates"
	"github.com/periplus/periplus/apiserver/registry/coordination"
	"github.com/periplus/periplus/apiserver/registry/core"
	"github.com/periplus/periplus/apiserver/registry/discovery"
	"github.com/periplus/periplus/apiserver/registry/flowcontrol"
	"github.com/periplus/periplus/apiserver/registry/networking"
	"github.com/periplus/periplus/apiserver/registry/node"
	"github.com/periplus/periplus/apiserver/registry/policy"
	"github.com/periplus/periplus/apiserver/registry/rbac"
	"github.com/periplus/periplus/apiserver/registry/resource"
	"github.com/periplus/periplus/apiserver/registry/scheduling"
	"github.com/periplus/periplus/apiserver/registry/storage"
	"github.com/periplus/periplus/apiserver/registry/storagemigration"
)

// groups lists the packages of kinds in the order in which discovery shows them.
var groups = []func(registry.Env) []*registry.Resource{
	core.Resources,
	apiregistration.Resources,
	apps.Resources,
	authentication.Resources,
	authorization.Resources,
	autoscaling.Resources,
	batch.Resources,
	certificates.Resources,
	networking.Resources,
	policy.Resources,
	rbac.Resources,
	storage.Resources,
	admissionregistration.Resources,
	apiextensions.Resources,
	scheduling.Resources,
	coordination.Resources,
	node.Resources,
	discovery.Resources,
	flowcontrol.Resources,
	resource.Resources,
	storagemigration.Resources,
}

// Resources returns every built-in resource of the GA API of Kubernetes v1.37, in
// the version in which it is stored. Each call makes new values, so that two
// servers in one process share no state (allocated cluster IPs and node ports).
func Resources(env registry.Env) []*registry.Resource {
	var resources []*registry.Resource
	for _, group := range groups {
		resources = append(resources, group(env)...)
	}
	return resources
}

// AddToScheme registers the types of all built-in resources: those of client-go,
// CustomResourceDefinition and APIService.
func AddToScheme(s *runtime.Scheme) error {
	for _, add := range []func(*runtime.Scheme) error{
		scheme.AddToScheme,
		apiextensionsv1.AddToScheme,
		apiregistrationv1.AddToScheme,
	} {
		if err := add(s); err != nil {
			return err
		}
	}
	return nil
}
