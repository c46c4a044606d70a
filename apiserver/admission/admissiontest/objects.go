package admissiontest

import (
	"context"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/periplus/periplus/apiserver/registry"
)

// Objects are what a plug-in reads, by the names of their resources.
type Objects map[string][]runtime.Object

var _ registry.Reader = Objects{}

// Get implements registry.Reader.
func (o Objects) Get(gvr schema.GroupVersionResource, namespace, name string) (runtime.Object, error) {
	for _, obj := range o[gvr.Resource] {
		if m := obj.(metav1.Object); m.GetName() == name && m.GetNamespace() == namespace {
			return obj, nil
		}
	}
	return nil, apierrors.NewNotFound(gvr.GroupResource(), name)
}

// List implements registry.Reader.
func (o Objects) List(gvr schema.GroupVersionResource, namespace string) ([]runtime.Object, error) {
	var out []runtime.Object
	for _, obj := range o[gvr.Resource] {
		if namespace == "" || obj.(metav1.Object).GetNamespace() == namespace {
			out = append(out, obj)
		}
	}
	return out, nil
}

// Allowed authorizes what it lists: "verb group/resource/subresource namespace/name", with
// nothing where there is nothing.
type Allowed []string

var _ authorizer.UnconditionalAuthorizer = Allowed{}

// Authorize implements authorizer.UnconditionalAuthorizer.
func (l Allowed) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	asked := strings.Join([]string{a.GetVerb(), a.GetAPIGroup() + "/" + a.GetResource() + "/" + a.GetSubresource(), a.GetNamespace() + "/" + a.GetName()}, " ")
	if slices.Contains(l, asked) {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, asked, nil
}
