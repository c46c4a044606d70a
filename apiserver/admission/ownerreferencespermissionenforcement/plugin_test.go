package ownerreferencespermissionenforcement_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/periplus/periplus/apiserver/admission"
	"github.com/periplus/periplus/apiserver/admission/admissiontest"
	"github.com/periplus/periplus/apiserver/admission/ownerreferencespermissionenforcement"
)

// kinds are served: ReplicaSets and Nodes.
type kinds struct{}

func (kinds) ResourceOf(gvk schema.GroupVersionKind) (schema.GroupVersionResource, bool, bool) {
	switch gvk {
	case schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "ReplicaSet"}:
		return schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "replicasets"}, true, true
	case schema.GroupVersionKind{Version: "v1", Kind: "Node"}:
		return schema.GroupVersionResource{Version: "v1", Resource: "nodes"}, false, true
	}
	return schema.GroupVersionResource{}, false, false
}

func TestOwners(t *testing.T) {
	t.Parallel()
	owner := func(apiVersion, kind, name string, blocks bool) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: name, UID: types.UID(name), BlockOwnerDeletion: &blocks}
	}
	free, set := owner("apps/v1", "ReplicaSet", "rs", false), owner("apps/v1", "ReplicaSet", "rs", true)
	pod := func(owners ...metav1.OwnerReference) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: owners}}
	}
	write := func(old, now *corev1.Pod, allowed ...string) admission.Attributes {
		a := admission.Attributes{Operation: admission.Create, Resource: corev1.SchemeGroupVersion.WithResource("pods"), Namespace: "ns", Name: "p", Object: now,
			User: &user.DefaultInfo{Name: "u"}, Authorizer: admissiontest.Allowed(allowed)}
		if old != nil {
			a.Operation, a.Old = admission.Update, old
		}
		return a
	}
	const (
		remove = "delete /pods/ ns/p"
		hold   = "update apps/replicasets/finalizers ns/rs"
	)
	status := write(pod(), pod(free))
	status.Subresource = "status"
	admissiontest.Run(t, ownerreferencespermissionenforcement.New(kinds{}), map[string]admissiontest.Case{
		"made with an owner":      {Attributes: write(nil, pod(free))},
		"given one":               {Attributes: write(pod(), pod(free)), Want: "cannot set an ownerRef on a resource you can't delete: delete /pods/ ns/p, <nil>"},
		"given one, may delete":   {Attributes: write(pod(), pod(free), remove)},
		"taken away":              {Attributes: write(pod(free), pod()), Want: "cannot set an ownerRef on a resource you can't delete"},
		"kept":                    {Attributes: write(pod(set), pod(set))},
		"status":                  {Attributes: status},
		"holds up":                {Attributes: write(nil, pod(set)), Want: "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: " + hold},
		"holds up, may":           {Attributes: write(nil, pod(set), hold)},
		"holds up, may anything":  {Attributes: write(nil, pod(set), "update */*/finalizers /*")},
		"begins to hold up":       {Attributes: write(pod(free), pod(set), remove), Want: "cannot set blockOwnerDeletion"},
		"ceases to":               {Attributes: write(pod(set), pod(free), remove)},
		"holds up the whole node": {Attributes: write(nil, pod(owner("v1", "Node", "n", true)), "update /nodes/finalizers /n")},
		"holds up what there is not": {Attributes: write(nil, pod(owner("x.io/v1", "X", "x", true))),
			Want: `cannot find RESTMapping for APIVersion x.io/v1 Kind X`},
	})
}
