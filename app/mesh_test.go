package app

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/periplus/periplus/apiserver/admission"
)

// A namespace that joins waits for the mesh, and is told when there can be none.
func TestNamespaceWaitsForMesh(t *testing.T) {
	t.Parallel()
	join := func(labels map[string]string) *admission.Attributes {
		return &admission.Attributes{
			Operation: admission.Create, Resource: schema.GroupVersionResource{Version: "v1", Resource: "namespaces"},
			Object: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: labels}},
		}
	}
	meshed := map[string]string{"istio-injection": "enabled"}
	synctest.Test(t, func(t *testing.T) {
		m := newMeshSwitch()
		if err := m.Validate(t.Context(), join(nil)); err != nil || len(m.wanted) != 0 {
			t.Errorf("a namespace without the label: %v, the mesh is wanted: %v", err, len(m.wanted) != 0)
		}
		ask := func() <-chan error {
			result := make(chan error, 1)
			go func() { result <- m.Validate(t.Context(), join(meshed)) }()
			synctest.Wait()
			return result
		}
		first := ask()
		if len(first) != 0 || len(m.wanted) != 1 {
			t.Error("it did not wait")
		}
		m.settle(errors.New("port 15012 is in use"))
		if err := <-first; err == nil || !strings.Contains(err.Error(), "the mesh cannot be started: port 15012 is in use") {
			t.Errorf("%v", err)
		}
		m.again()
		second := ask()
		m.settle(nil)
		if err := <-second; err != nil {
			t.Error(err)
		}
		if err := m.Validate(t.Context(), join(meshed)); err != nil {
			t.Errorf("once it is on: %v", err)
		}
		m.again()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := m.Validate(ctx, join(meshed)); !errors.Is(err, context.Canceled) {
			t.Errorf("a client that has gone: %v", err)
		}
	})
}
