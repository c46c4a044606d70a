package gatewayapi

import (
	"errors"
	"fmt"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/periplus/periplus/gateway"
	"github.com/periplus/periplus/l7"
)

// from is who refers, to is what is referred to.
type from struct{ group, kind, namespace string }
type to struct{ group, kind, namespace, name string }

// granted reports whether a ReferenceGrant allows a reference to another namespace.
func (st *state) granted(f from, t to) bool {
	for _, g := range st.grants {
		if g.Namespace != t.namespace {
			continue
		}
		fromOK, toOK := false, false
		for _, x := range g.Spec.From {
			fromOK = fromOK || string(x.Group) == f.group && string(x.Kind) == f.kind && string(x.Namespace) == f.namespace
		}
		for _, x := range g.Spec.To {
			toOK = toOK || string(x.Group) == t.group && string(x.Kind) == t.kind && (x.Name == nil || *x.Name == "" || string(*x.Name) == t.name)
		}
		if fromOK && toOK {
			return true
		}
	}
	return false
}

// backend returns the cluster of a reference; otherwise what is wrong with it.
func (st *state) backend(r *routeState, ref *gatewayv1.BackendObjectReference, suffix string, options l7.Cluster) (string, problem) {
	if ref.Group != nil && *ref.Group != "" && *ref.Group != "core" || ref.Kind != nil && *ref.Kind != "Service" {
		kind := "Service"
		if ref.Kind != nil {
			kind = string(*ref.Kind)
		}
		return "", problem{string(gatewayv1.RouteReasonInvalidKind), fmt.Sprintf("Backend %s of kind %s is not supported: only Services are", ref.Name, kind)}
	}
	namespace := r.object.GetNamespace()
	if ref.Namespace != nil {
		namespace = string(*ref.Namespace)
	}
	if namespace != r.object.GetNamespace() && !st.granted(from{gatewayv1.GroupName, r.kind, r.object.GetNamespace()}, to{"", "Service", namespace, string(ref.Name)}) {
		return "", problem{string(gatewayv1.RouteReasonRefNotPermitted), fmt.Sprintf("Service %s/%s may not be used: no ReferenceGrant in its namespace allows it", namespace, ref.Name)}
	}
	if ref.Port == nil {
		return "", problem{string(gatewayv1.RouteReasonUnsupportedValue), fmt.Sprintf("Backend %s needs a port", ref.Name)}
	}
	cluster, err := st.build.Cluster(namespace, string(ref.Name), gateway.ServicePort{Number: *ref.Port}, suffix, options)
	if err != nil {
		if errors.Is(err, gateway.ErrNoService) || errors.Is(err, gateway.ErrNoPort) {
			return "", problem{string(gatewayv1.RouteReasonBackendNotFound), err.Error()}
		}
		return "", problem{string(gatewayv1.RouteReasonBackendNotFound), err.Error()}
	}
	return cluster, problem{}
}
