package storageversionmigrator

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/retry"
)

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// mark says in the status of a custom resource's definition that a migration is at work,
// or how it ended. Of a resource that is none nothing is said.
func (r *reconciler) mark(ctx context.Context, of metav1.GroupResource, begins bool, reason, message string) error {
	if of.Group == "" {
		return nil
	}
	c, err := r.kinds()
	if err != nil {
		return err
	}
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		crd, err := c.Resource(definitions).Get(ctx, of.Resource+"."+of.Group, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		status, text := "False", message
		applied := map[string]any{}
		switch {
		case begins:
			status = "True"
		case reason != "MigrationSucceeded":
		case observed(crd) == crd.GetGeneration():
			// Nothing is stored otherwise any more, as nothing has changed meanwhile.
			applied["storedVersions"] = []any{storage(crd)}
			text += " and the stored versions have been updated"
		default:
			text += " but the stored versions have not been updated due to a generation mismatch"
		}
		applied["conditions"] = []any{map[string]any{
			"type": "StorageMigrating", "status": status, "reason": reason, "message": text,
			"lastTransitionTime": r.Clock.Now().UTC().Format("2006-01-02T15:04:05Z"), "observedGeneration": crd.GetGeneration(),
		}}
		_, err = c.Resource(definitions).ApplyStatus(ctx, crd.GetName(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
			"metadata": map[string]any{"name": crd.GetName(), "resourceVersion": crd.GetResourceVersion()}, "status": applied,
		}}, metav1.ApplyOptions{FieldManager: "migration-runner-controller", Force: true})
		return err
	})
}

// observed is the generation of the definition when the migration began.
func observed(crd *unstructured.Unstructured) int64 {
	conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
	for _, c := range conditions {
		if m, ok := c.(map[string]any); ok && m["type"] == "StorageMigrating" {
			generation, _, _ := unstructured.NestedInt64(m, "observedGeneration")
			return generation
		}
	}
	return -1
}

// storage is the version in which objects are stored.
func storage(crd *unstructured.Unstructured) any {
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, v := range versions {
		if m, ok := v.(map[string]any); ok && m["storage"] == true {
			return m["name"]
		}
	}
	return nil
}
