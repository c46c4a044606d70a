package gatewayapi

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// Controller is the name that GatewayClasses of this gateway have.
const Controller = "periplus.io/gateway-controller"

// Class is the name of the class that every cluster has.
const Class = "periplus"

func resource(name string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: gatewayv1.GroupName, Version: "v1", Resource: name}
}

// The resources that are read.
var (
	classes    = resource("gatewayclasses")
	gateways   = resource("gateways")
	httpRoutes = resource("httproutes")
	grpcRoutes = resource("grpcroutes")
	grants     = resource("referencegrants")
)

// typed makes the Go type of a resource's objects, so that informers hold no maps.
func typed(r schema.GroupVersionResource) func(any) (any, error) {
	return func(obj any) (any, error) {
		u, ok := obj.(*unstructured.Unstructured)
		if !ok {
			return obj, nil // converted already
		}
		var out runtime.Object
		switch r {
		case classes:
			out = &gatewayv1.GatewayClass{}
		case gateways:
			out = &gatewayv1.Gateway{}
		case httpRoutes:
			out = &gatewayv1.HTTPRoute{}
		case grpcRoutes:
			out = &gatewayv1.GRPCRoute{}
		case grants:
			out = &gatewayv1.ReferenceGrant{}
		default:
			return nil, fmt.Errorf("no type for %s", r)
		}
		u.SetManagedFields(nil)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, out); err != nil {
			return nil, fmt.Errorf("%s %s/%s: %w", r.Resource, u.GetNamespace(), u.GetName(), err)
		}
		return out, nil
	}
}
