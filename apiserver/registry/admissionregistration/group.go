package admissionregistration

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"

	"github.com/periplus/periplus/apiserver/registry"
)

// Resources lists the kinds of the group.
func Resources(_ registry.Env) []*registry.Resource {
	return []*registry.Resource{
		validatingWebhookConfigurations(),
		mutatingWebhookConfigurations(),
		validatingAdmissionPolicies(),
		validatingAdmissionPolicyBindings(),
		mutatingAdmissionPolicies(),
		mutatingAdmissionPolicyBindings(),
	}
}

// version is the group and version in which the kinds are stored.
var version = admissionv1.SchemeGroupVersion
