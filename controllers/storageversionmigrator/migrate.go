package storageversionmigrator

import (
	"context"
	"encoding/json"
	"fmt"

	storagemigrationv1 "k8s.io/api/storagemigration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/sets"
)

// page is how many objects are listed at once.
const page = 500

// needed are the verbs that a resource must have.
var needed = []string{"update", "patch", "list"}

// A target is a resource as it is served.
type target struct {
	gvr        schema.GroupVersionResource
	gvk        schema.GroupVersionKind
	migratable bool
}

// find looks a resource up, in the version that its group prefers of those that have it.
func (r *reconciler) find(of metav1.GroupResource) (*target, error) {
	groups, err := r.Discovery.ServerGroups()
	if err != nil {
		return nil, err
	}
	for _, g := range groups.Groups {
		if g.Name != of.Group {
			continue
		}
		versions := append([]metav1.GroupVersionForDiscovery{g.PreferredVersion}, g.Versions...)
		for _, v := range versions {
			list, err := r.Discovery.ServerResourcesForGroupVersion(v.GroupVersion)
			if apierrors.IsNotFound(err) {
				continue
			}
			if err != nil {
				return nil, err
			}
			gv := schema.GroupVersion{Group: g.Name, Version: v.Version}
			for i := range list.APIResources {
				if one := &list.APIResources[i]; one.Name == of.Resource {
					return &target{gv.WithResource(one.Name), gv.WithKind(one.Kind), sets.New(one.Verbs...).HasAll(needed...)}, nil
				}
			}
		}
	}
	return nil, nil
}

// migrate patches all objects that are not newer than the migration with nothing: who
// stores them sees that they are to be stored otherwise.
func (r *reconciler) migrate(ctx context.Context, m *migration, t *target) error {
	candidates, total, err := r.candidates(ctx, t, m.Status.ResourceVersion)
	if err != nil {
		return err
	}
	left := len(candidates)
	for i := range candidates {
		err := r.patch(ctx, t, &candidates[i])
		switch {
		case err == nil, apierrors.IsConflict(err), apierrors.IsNotFound(err): // written since, or gone
			left--
		case transient(err):
			set(m, storagemigrationv1.MigrationRunning, metav1.ConditionTrue, "MigrationRunning", running(left, total, err))
			if _, writing := r.write(ctx, m); writing != nil {
				return writing
			}
			return err
		default:
			set(m, storagemigrationv1.MigrationRunning, metav1.ConditionTrue, "MigrationRunning", running(left, total, nil))
			return r.fail(ctx, m, fmt.Sprintf("%d/%d not yet migrated. migration encountered unhandled error: %s", left, total, err))
		}
	}
	set(m, storagemigrationv1.MigrationRunning, metav1.ConditionTrue, "MigrationRunning", running(0, total, nil))
	set(m, storagemigrationv1.MigrationSucceeded, metav1.ConditionTrue, "StorageVersionMigrationSucceeded", "Migration completed")
	_, err = r.write(ctx, m)
	return err
}

// candidates returns the objects that are not newer than a resource version, and how many there are.
func (r *reconciler) candidates(ctx context.Context, t *target, upTo string) (out []metav1.PartialObjectMetadata, total int, err error) {
	options := metav1.ListOptions{Limit: page}
	for {
		list, err := r.Metadata.Resource(t.gvr).List(ctx, options)
		if err != nil {
			return nil, 0, err
		}
		for i := range list.Items {
			o := &list.Items[i]
			total++
			order, err := resourceversion.CompareResourceVersion(o.ResourceVersion, upTo)
			if err != nil {
				return nil, 0, err
			}
			if order <= 0 {
				out = append(out, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion}})
			}
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return out, total, nil
		}
	}
}

// patch changes nothing, unless the object is another one by now.
func (r *reconciler) patch(ctx context.Context, t *target, o *metav1.PartialObjectMetadata) error {
	apiVersion, kind := t.gvk.ToAPIVersionAndKind()
	body, err := json.Marshal(map[string]any{
		"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"uid": o.UID, "resourceVersion": o.ResourceVersion},
	})
	if err != nil {
		return err
	}
	_, err = r.Metadata.Resource(t.gvr).Namespace(o.Namespace).Patch(ctx, o.Name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: name})
	return err
}

// transient reports an error after which another attempt may succeed.
func transient(err error) bool {
	return utilnet.IsConnectionReset(err) || utilnet.IsHTTP2ConnectionLost(err) || utilnet.IsProbableEOF(err) || apierrors.IsServerTimeout(err) ||
		apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err) || apierrors.IsInternalError(err) || apierrors.IsTimeout(err)
}
