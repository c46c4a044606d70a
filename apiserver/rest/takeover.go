package rest

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
)

// clientSideManager is the name under which kubectl's client-side apply owns fields.
// kubectl looks for it when it moves an object to server-side apply, and drops the
// fields of that owner that the new configuration does not have.
const clientSideManager = "kubectl-client-side-apply"

// takeOver gives owners to an object that is about to be applied for the first
// time after kubectl has applied it on the client's side: kubectl owns what its
// last configuration said and still holds; all else (what controllers, scalers and
// defaults have set) is owned as if it had always been there. live is changed.
func (e *endpoint) takeOver(live runtime.Object, fields *managedfields.FieldManager) error {
	meta := metaOf(live)
	last := meta.Annotations[corev1.LastAppliedConfigAnnotation]
	if len(meta.ManagedFields) > 0 || last == "" {
		return nil
	}
	wanted := &unstructured.Unstructured{Object: map[string]any{}}
	if decodeConfiguration([]byte(last), &wanted.Object) != nil || wanted.GroupVersionKind() != e.gvk {
		return nil // another version's, or nonsense: all is owned as it always was
	}
	annotations := wanted.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[corev1.LastAppliedConfigAnnotation] = last
	wanted.SetAnnotations(annotations)
	applied, err := e.fromUnstructured(wanted)
	if err != nil {
		return nil //nolint:nilerr // as above
	}
	applied.GetObjectKind().SetGroupVersionKind(e.gvk)
	nothing, err := form{e}.New(e.gvk)
	if err != nil {
		return err
	}
	if applied, err = fields.Update(nothing, applied, clientSideManager); err != nil {
		return err
	}
	meta.ManagedFields = metaOf(applied).ManagedFields
	_, err = fields.Update(applied, live, "before-first-apply")
	return err
}
