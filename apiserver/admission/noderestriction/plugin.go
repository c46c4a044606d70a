package noderestriction

import (
	"context"
	"fmt"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/periplus/periplus/apiserver/admission"
	"github.com/periplus/periplus/apiserver/registry"
)

var (
	pods     = corev1.SchemeGroupVersion.WithResource("pods")
	nodes    = corev1.SchemeGroupVersion.WithResource("nodes")
	claims   = corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims")
	volumes  = corev1.SchemeGroupVersion.WithResource("persistentvolumes")
	accounts = corev1.SchemeGroupVersion.WithResource("serviceaccounts")
	drivers  = storagev1.SchemeGroupVersion.WithResource("csidrivers")
)

type plugin struct{ objects registry.Reader }

var _ admission.Mutator = plugin{}

// New returns the plug-in.
func New(objects registry.Reader) admission.Plugin { return plugin{objects} }

func (plugin) Name() string { return "NodeRestriction" }

// nodeOf returns the node that sends a request, if it is one.
func nodeOf(u user.Info) (name string, isNode bool) {
	if u == nil || !slices.Contains(u.GetGroups(), user.NodesGroup) {
		return "", false
	}
	return strings.CutPrefix(u.GetName(), "system:node:")
}

// Admit implements admission.Mutator: as upstream, before others may change the object.
func (p plugin) Admit(ctx context.Context, a *admission.Attributes) error {
	node, ok := nodeOf(a.User)
	if !ok {
		return nil
	}
	err := fmt.Errorf("could not determine node from user %q", a.User.GetName())
	if node != "" {
		err = p.check(ctx, node, a)
	}
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsInternalError(err) {
		return err
	}
	return apierrors.NewForbidden(a.Resource.GroupResource(), nameOf(a), err)
}

func (p plugin) check(ctx context.Context, node string, a *admission.Attributes) error {
	switch a.Resource.GroupResource() {
	case pods.GroupResource():
		switch a.Subresource {
		case "":
			return p.pod(node, a)
		case "status":
			return podStatus(node, a)
		case "eviction":
			return p.eviction(node, a)
		}
		return fmt.Errorf("unexpected pod subresource %q, only 'status' and 'eviction' are allowed", a.Subresource)
	case nodes.GroupResource():
		return ownNode(node, a)
	case claims.GroupResource():
		if a.Subresource != "status" {
			return claimTaken(node, a)
		}
		return claimStatus(node, a)
	case accounts.GroupResource():
		return p.token(ctx, node, a)
	case schema.GroupResource{Group: certificatesv1.GroupName, Resource: "podcertificaterequests"}:
		return p.podCertificate(ctx, node, a)
	case schema.GroupResource{Group: certificatesv1.GroupName, Resource: "certificatesigningrequests"}:
		return certificate(node, a)
	case schema.GroupResource{Group: coordinationv1.GroupName, Resource: "leases"}:
		return lease(node, a)
	case schema.GroupResource{Group: storagev1.GroupName, Resource: "csinodes"}:
		return csiNode(node, a)
	case schema.GroupResource{Group: resourcev1.GroupName, Resource: "resourceslices"}:
		return slice(node, a)
	}
	return nil
}

// nameOf is the name of the object; on creation it may only be inside of it.
func nameOf(a *admission.Attributes) string {
	if a.Name != "" {
		return a.Name
	}
	if m, ok := a.Object.(interface{ GetName() string }); ok {
		return m.GetName()
	}
	return ""
}

// get reads an object; nil without an error: a type that it should not have.
func get[T any](p plugin, gvr schema.GroupVersionResource, namespace, name string) (T, error) {
	obj, err := p.objects.Get(gvr, namespace, name)
	if err != nil {
		var none T
		return none, err
	}
	t, ok := obj.(T)
	if !ok {
		return t, apierrors.NewInternalError(fmt.Errorf("%s %q is a %T", gvr.Resource, name, obj))
	}
	return t, nil
}

// may reports whether the node is authorized for a verb that only this plug-in asks about.
func may(ctx context.Context, a *admission.Attributes, verb, resource, name string) (bool, error) {
	if a.Authorizer == nil {
		return false, nil
	}
	d, _, err := a.Authorizer.Authorize(ctx, authorizer.AttributesRecord{
		User: a.User, Verb: verb, APIGroup: a.Resource.Group, APIVersion: a.Resource.Version, Resource: resource,
		Namespace: a.Namespace, Name: name, ResourceRequest: true,
	})
	return d == authorizer.DecisionAllow, err
}

func unexpectedType(obj any) error { return fmt.Errorf("unexpected type %T", obj) }
