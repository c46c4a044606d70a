package apiserver

import (
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/certificates"
	"github.com/periplus/periplus/apiserver/registry/core"
)

// views are the subresources that show the same object under rules of their own.
func views() map[schema.GroupVersionResource]map[string]registry.Strategy {
	return map[schema.GroupVersionResource]map[string]registry.Strategy{
		corev1.SchemeGroupVersion.WithResource("pods"): {
			"ephemeralcontainers": core.PodEphemeralContainers(),
			"resize":              core.PodResize(),
		},
		corev1.SchemeGroupVersion.WithResource("namespaces"):                         {"finalize": core.NamespaceFinalize()},
		certificatesv1.SchemeGroupVersion.WithResource("certificatesigningrequests"): {"approval": certificates.Approval()},
	}
}
