package namespace_test

import (
	"context"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/periplus/periplus/controllers"
	"github.com/periplus/periplus/controllers/controllerstest"
	"github.com/periplus/periplus/controllers/namespace"
)

// TestDeletion empties a namespace, says what remains, and lets it go when nothing
// does.
func TestDeletion(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	meta := func(kind, name, ns string, finalizers ...string) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: kind},
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: ns, Finalizers: finalizers},
		}
	}
	scheme := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	client := metadatafake.NewSimpleMetadataClient(scheme,
		meta("Secret", "s1", "old"), meta("Secret", "s2", "old"), meta("Secret", "s3", "other"), meta("ConfigMap", "held", "old", "example.com/hold"))
	configMaps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	client.PrependReactor("delete", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, nil })

	now := metav1.Now()
	ns := &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: "old", DeletionTimestamp: &now, Finalizers: []string{"hold"}},
		Spec:       corev1.NamespaceSpec{Finalizers: []corev1.FinalizerName{corev1.FinalizerKubernetes}},
		Status:     corev1.NamespaceStatus{Phase: corev1.NamespaceTerminating},
	}
	finalized := make(chan struct{})
	var once sync.Once
	c := controllerstest.Start(t, []controllers.Controller{namespace.Controller()}, func(e *controllers.Env) {
		e.Metadata = client
		e.Client.(interface {
			PrependReactor(verb, resource string, f clienttesting.ReactionFunc)
		}).PrependReactor("create", "namespaces", func(a clienttesting.Action) (bool, runtime.Object, error) {
			if a.GetSubresource() != "finalize" {
				return false, nil, nil
			}
			once.Do(func() { close(finalized) })
			return true, a.(clienttesting.CreateAction).GetObject(), nil
		})
		resources := metav1.APIResourceList{GroupVersion: "v1"}
		for name, kind := range map[string]string{"secrets": "Secret", "configmaps": "ConfigMap", "nodes": "Node"} {
			resources.APIResources = append(resources.APIResources, metav1.APIResource{
				Name: name, Kind: kind, Namespaced: name != "nodes", Verbs: metav1.Verbs{"list", "watch", "delete"},
			})
		}
		e.Discovery = kinds{list: &resources}
	}, ns)

	var seen *corev1.Namespace
	c.Until("the held object shows in the conditions", func() bool {
		got, err := c.Client.CoreV1().Namespaces().Get(ctx, "old", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		seen = got
		return len(got.Status.Conditions) == 5
	})
	for _, cond := range seen.Status.Conditions {
		want := map[corev1.NamespaceConditionType]string{
			corev1.NamespaceContentRemaining:       "Some resources are remaining: configmaps. has 1 resource instances",
			corev1.NamespaceFinalizersRemaining:    "Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances",
			corev1.NamespaceDeletionContentFailure: "All content successfully deleted, may be waiting on finalization",
		}[cond.Type]
		if want != "" && cond.Message != want {
			t.Errorf("%s: %q, want %q", cond.Type, cond.Message, want)
		}
	}
	left := func(resource, namespace string) int {
		list, err := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: resource}).Namespace(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return len(list.Items)
	}
	if left("secrets", "old") != 0 || left("secrets", "other") != 1 {
		t.Errorf("%d secrets are left, %d elsewhere", left("secrets", "old"), left("secrets", "other"))
	}
	if err := client.Tracker().Delete(configMaps, "old", "held"); err != nil {
		t.Fatal(err)
	}
	// Nothing else happens and the clock stands still: the loop watches what was held.
	select {
	case <-finalized:
	case <-t.Context().Done():
	}
}

// kinds is a discovery client that knows a few kinds.
type kinds struct {
	discovery.DiscoveryInterface
	list *metav1.APIResourceList
}

func (k kinds) ServerPreferredResources() ([]*metav1.APIResourceList, error) {
	return []*metav1.APIResourceList{k.list}, nil
}
