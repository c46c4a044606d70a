package crd

import (
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Groups of Istio's API.
const (
	Networking = "networking.istio.io"
	Security   = "security.istio.io"
)

// Resources of the version that is stored.
var (
	VirtualServices       = schema.GroupVersionResource{Group: Networking, Version: "v1", Resource: "virtualservices"}
	DestinationRules      = schema.GroupVersionResource{Group: Networking, Version: "v1", Resource: "destinationrules"}
	PeerAuthentications   = schema.GroupVersionResource{Group: Security, Version: "v1", Resource: "peerauthentications"}
	AuthorizationPolicies = schema.GroupVersionResource{Group: Security, Version: "v1", Resource: "authorizationpolicies"}
)

// A kind is one custom resource.
type kind struct {
	gvr      schema.GroupVersionResource
	kind     string
	short    string
	versions []string // served besides v1
	about    string
	columns  []apiextensionsv1.CustomResourceColumnDefinition
	spec     apiextensionsv1.JSONSchemaProps
}

func kinds() []kind {
	return []kind{
		{
			gvr: VirtualServices, kind: "VirtualService", short: "vs", versions: []string{"v1beta1", "v1alpha3"},
			about: "How requests to a host are routed.", spec: virtualService(),
			columns: []apiextensionsv1.CustomResourceColumnDefinition{
				column("Gateways", "string", ".spec.gateways", "The gateways and sidecars that apply these routes."),
				column("Hosts", "string", ".spec.hosts", "The hosts to which requests are sent."),
			},
		},
		{
			gvr: DestinationRules, kind: "DestinationRule", short: "dr", versions: []string{"v1beta1", "v1alpha3"},
			about: "What happens to requests for a host after they have been routed.", spec: destinationRule(),
			columns: []apiextensionsv1.CustomResourceColumnDefinition{column("Host", "string", ".spec.host", "The name of a service.")},
		},
		{
			gvr: PeerAuthentications, kind: "PeerAuthentication", short: "pa", versions: []string{"v1beta1"},
			about: "Whether workloads take plain text, mutual TLS, or both.", spec: peerAuthentication(),
			columns: []apiextensionsv1.CustomResourceColumnDefinition{column("Mode", "string", ".spec.mtls.mode", "The mode for all ports.")},
		},
		{
			gvr: AuthorizationPolicies, kind: "AuthorizationPolicy", short: "ap", versions: []string{"v1beta1"},
			about: "Who may call a workload.", spec: authorizationPolicy(),
			columns: []apiextensionsv1.CustomResourceColumnDefinition{column("Action", "string", ".spec.action", "The operation to take.")},
		},
	}
}

func column(name, typ, path, about string) apiextensionsv1.CustomResourceColumnDefinition {
	return apiextensionsv1.CustomResourceColumnDefinition{Name: name, Type: typ, JSONPath: path, Description: about}
}

// Definitions returns the custom resource definitions.
func Definitions() []*apiextensionsv1.CustomResourceDefinition {
	var out []*apiextensionsv1.CustomResourceDefinition
	for _, k := range kinds() {
		out = append(out, k.definition())
	}
	return out
}

func (k *kind) definition() *apiextensionsv1.CustomResourceDefinition {
	columns := append(slices.Clip(k.columns), column("Age", "date", ".metadata.creationTimestamp", "When it was made."))
	versions := make([]apiextensionsv1.CustomResourceDefinitionVersion, 0, 1+len(k.versions))
	for _, v := range append([]string{k.gvr.Version}, k.versions...) {
		versions = append(versions, apiextensionsv1.CustomResourceDefinitionVersion{
			Name: v, Served: true, Storage: v == k.gvr.Version,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
				Type: "object", Description: k.about,
				Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": k.spec, "status": open("What the control plane says about it.")},
			}},
			Subresources:             &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
			AdditionalPrinterColumns: columns,
		})
	}
	family, _, _ := cutGroup(k.gvr.Group)
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{
			Name:   k.gvr.Resource + "." + k.gvr.Group,
			Labels: map[string]string{"app.kubernetes.io/managed-by": "periplus", "istio": family},
		},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: k.gvr.Group, Scope: apiextensionsv1.NamespaceScoped, Versions: versions,
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Plural: k.gvr.Resource, Singular: lower(k.kind), Kind: k.kind, ListKind: k.kind + "List",
				ShortNames: []string{k.short}, Categories: []string{"istio-io", family + "-istio-io"},
			},
		},
	}
}
