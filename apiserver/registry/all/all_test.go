package all_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/all"
)

// notStored are the GA kinds of client-go's scheme that are no resources of
// their own: subresources, options and what the server answers with.
var notStored = map[string]bool{
	"v1.Binding": true, "v1.ComponentStatus": true, "v1.PodExecOptions": true, "v1.PodAttachOptions": true,
	"v1.PodLogOptions": true, "v1.PodPortForwardOptions": true, "v1.PodProxyOptions": true, "v1.NodeProxyOptions": true,
	"v1.ServiceProxyOptions": true, "v1.PodStatusResult": true, "v1.RangeAllocation": true, "v1.SerializedReference": true,
	"v1.List": true, "policy/v1.Eviction": true, "autoscaling/v1.Scale": true, "authentication.k8s.io/v1.TokenRequest": true,
	"v1.Status": true, "v1.APIGroup": true, "v1.APIGroupList": true, "v1.APIResourceList": true, "v1.APIVersions": true,
}

func TestEveryGAKindIsListed(t *testing.T) {
	t.Parallel()
	listed := map[schema.GroupVersionKind]bool{}
	for _, r := range all.Resources(registry.Env{}) {
		if listed[r.GVK()] {
			t.Errorf("%s is listed twice", r.GVK())
		}
		listed[r.GVK()] = true
		for _, also := range r.Also {
			listed[also.GV.WithKind(r.Kind)] = true
		}
	}
	for gvk := range scheme.Scheme.AllKnownTypes() {
		if strings.Contains(gvk.Version, "alpha") || strings.Contains(gvk.Version, "beta") || gvk.Version == runtime.APIVersionInternal {
			continue
		}
		name := gvk.GroupVersion().String() + "." + gvk.Kind
		if notStored[name] || strings.HasSuffix(gvk.Kind, "List") || strings.HasSuffix(gvk.Kind, "Options") || gvk.Kind == "WatchEvent" {
			continue
		}
		if !listed[gvk] {
			t.Errorf("%s is in client-go's scheme but is no resource", name)
		}
	}
}

func TestResourcesAreWellFormed(t *testing.T) {
	t.Parallel()
	s := runtime.NewScheme()
	if err := all.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	for _, r := range all.Resources(registry.Env{}) {
		t.Run(r.GVR.String(), func(t *testing.T) {
			t.Parallel()
			check := func(obj runtime.Object, want schema.GroupVersionKind) {
				t.Helper()
				gvks, _, err := s.ObjectKinds(obj)
				if err != nil {
					t.Fatal(err)
				}
				if gvks[0] != want {
					t.Errorf("makes %s, want %s", gvks[0], want)
				}
			}
			check(r.New(), r.GVK())
			if r.Verbs == nil {
				check(r.NewList(), r.GVR.GroupVersion().WithKind(r.Kind+"List"))
			}
			for _, also := range r.Also {
				check(also.New(), also.GV.WithKind(r.Kind))
				check(also.NewList(), also.GV.WithKind(r.Kind+"List"))
			}
			if r.Singular != strings.ToLower(r.Kind) {
				t.Errorf("singular %q", r.Singular)
			}
			if plural, _ := meta.UnsafeGuessKindToResource(r.GVK()); plural != r.GVR && r.Kind != "Endpoints" {
				t.Errorf("resource %s, want %s", r.GVR, plural)
			}
			if r.Strategy == nil {
				t.Error("no strategy")
			}
		})
	}
}
