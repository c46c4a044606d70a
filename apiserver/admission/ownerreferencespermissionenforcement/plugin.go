package ownerreferencespermissionenforcement

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/periplus/periplus/apiserver/admission"
)

// Name is the plug-in's.
const Name = "OwnerReferencesPermissionEnforcement"

// Objects is what the plug-in reads.
type Objects interface {
	// ResourceOf returns the resource that serves a kind.
	ResourceOf(gvk schema.GroupVersionKind) (gvr schema.GroupVersionResource, namespaced, ok bool)
}

type plugin struct{ objects Objects }

var _ admission.Validator = plugin{}

// New returns the plug-in.
func New(objects Objects) admission.Plugin { return plugin{objects} }

func (plugin) Name() string { return Name }

// Validate implements admission.Validator.
func (p plugin) Validate(ctx context.Context, a *admission.Attributes) error {
	if a.Operation != admission.Create && a.Operation != admission.Update || a.Authorizer == nil || a.User == nil ||
		a.Resource.GroupResource() == corev1.Resource("pods") && a.Subresource == "status" {
		return nil
	}
	old, now := ownersOf(a.Old), ownersOf(a.Object)
	if apiequality.Semantic.DeepEqual(old, now) {
		return nil
	}
	// Who makes an object could as well not have made it; who changes its owners may let it be deleted.
	if a.Operation != admission.Create {
		allowed, why := ask(ctx, a, authorizer.AttributesRecord{
			Verb: "delete", Namespace: a.Namespace, APIGroup: a.Resource.Group, APIVersion: a.Resource.Version,
			Resource: a.Resource.Resource, Subresource: a.Subresource, Name: a.Name,
		})
		if !allowed {
			return fmt.Errorf("cannot set an ownerRef on a resource you can't delete: %s", why)
		}
	}
	blocking := slices.DeleteFunc(slices.Clone(now), func(r metav1.OwnerReference) bool {
		return !blocks(r) || slices.ContainsFunc(old, func(o metav1.OwnerReference) bool { return o.UID == r.UID && blocks(o) })
	})
	if len(blocking) == 0 {
		return nil
	}
	if all, _ := ask(ctx, a, finalize("*", "*", "*", "*")); all {
		return nil
	}
	for _, r := range blocking {
		if err := p.mayBlock(ctx, a, r); err != nil {
			return err
		}
	}
	return nil
}

func (p plugin) mayBlock(ctx context.Context, a *admission.Attributes, r metav1.OwnerReference) error {
	gvk := schema.FromAPIVersionAndKind(r.APIVersion, r.Kind)
	gvr, namespaced, ok := p.objects.ResourceOf(gvk)
	if !ok {
		return fmt.Errorf("cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion %s Kind %s: no matches for kind %q in version %q",
			r.APIVersion, r.Kind, gvk.Kind, r.APIVersion)
	}
	q := finalize(gvr.Group, gvr.Version, gvr.Resource, r.Name)
	if namespaced {
		q.Namespace = a.Namespace
	}
	if allowed, why := ask(ctx, a, q); !allowed {
		return fmt.Errorf("cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: %s", why)
	}
	return nil
}

func finalize(group, version, resource, name string) authorizer.AttributesRecord {
	return authorizer.AttributesRecord{Verb: "update", APIGroup: group, APIVersion: version, Resource: resource, Subresource: "finalizers", Name: name}
}

// ask puts a question about the write's sender; why is for the message.
func ask(ctx context.Context, a *admission.Attributes, q authorizer.AttributesRecord) (allowed bool, why string) {
	q.User, q.ResourceRequest = a.User, true
	d, reason, err := a.Authorizer.Authorize(ctx, q)
	return d == authorizer.DecisionAllow, fmt.Sprintf("%v, %v", reason, err)
}

func blocks(r metav1.OwnerReference) bool {
	return r.BlockOwnerDeletion != nil && *r.BlockOwnerDeletion
}

func ownersOf(obj runtime.Object) []metav1.OwnerReference {
	if m, ok := obj.(metav1.ObjectMetaAccessor); ok && obj != nil {
		return m.GetObjectMeta().GetOwnerReferences()
	}
	return nil
}
