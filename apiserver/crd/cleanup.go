package crd

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/periplus/periplus/apiserver/cacher"
	"github.com/periplus/periplus/apiserver/rest"
	"github.com/periplus/periplus/base"
)

// clean starts to delete the objects of a definition that is going away. When none
// is left the definition loses its finalizer.
func (s *Server) clean(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.served[crd.Name]
	if d == nil {
		d = &served{crd: crd}
		s.served[crd.Name] = d
	}
	if d.cleaning != nil {
		return
	}
	own, cancel := context.WithCancel(ctx)
	d.cleaning, d.cleaned = cancel, make(chan struct{})
	objects, done := d.objects, d.cleaned
	go func() {
		defer close(done)
		defer cancel()
		if err := s.cleanup(own, crd, objects); err != nil && own.Err() == nil {
			s.log.Error("custom resources cannot be deleted", base.KeyName, crd.Name, base.KeyError, err)
		}
	}()
}

func terminating(status apiextensionsv1.ConditionStatus, reason, message string) condition {
	return condition{Type: apiextensionsv1.Terminating, Status: status, Reason: reason, Message: message}
}

func (s *Server) cleanup(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition, objects *rest.Objects) error {
	last := terminating(apiextensionsv1.ConditionFalse, "NeverEstablished", "resource was never established")
	if objects != nil {
		begun := terminating(apiextensionsv1.ConditionTrue, "InstanceDeletionInProgress", "CustomResource deletion is in progress")
		if err := s.write(ctx, crd.Name, func(c *apiextensionsv1.CustomResourceDefinition) { apihelpers.SetCRDCondition(c, begun) }); err != nil {
			return err
		}
		if err := deleteAll(ctx, objects); err != nil {
			if ctx.Err() == nil {
				failed := terminating(apiextensionsv1.ConditionTrue, "InstanceDeletionFailed", fmt.Sprintf("could not issue all deletes: %v", err))
				err = errors.Join(err, s.write(ctx, crd.Name, func(c *apiextensionsv1.CustomResourceDefinition) { apihelpers.SetCRDCondition(c, failed) }))
			}
			return err
		}
		last = terminating(apiextensionsv1.ConditionFalse, "InstanceDeletionCompleted", "removed all instances")
	}
	return s.write(ctx, crd.Name, func(c *apiextensionsv1.CustomResourceDefinition) {
		apihelpers.SetCRDCondition(c, last)
		apihelpers.CRDRemoveFinalizer(c, apiextensionsv1.CustomResourceCleanupFinalizer)
	})
}

// deleteAll deletes every object and waits until all are gone, which may take as
// long as those who hold them by finalizers need.
func deleteAll(ctx context.Context, objects *rest.Objects) error {
	marked := map[string]bool{} // by key
	snapshot, watch := objects.Cache.SnapshotAndWatch()
	buf := make([]cacher.Event, 0, 64)
	for {
		left := 0
		var failures []error
		snapshot.Each("", "", func(o *cacher.Object) bool {
			left++
			if marked[o.Key] || ctx.Err() != nil {
				return true
			}
			marked[o.Key] = true
			err := objects.Purge(ctx, o.Meta.GetNamespace(), o.Meta.GetName(), &metav1.DeleteOptions{})
			if err != nil && !apierrors.IsNotFound(err) {
				failures = append(failures, err)
			}
			return true
		})
		if len(failures) > 0 {
			return errors.Join(failures...)
		}
		if left == 0 {
			return nil
		}
		if _, err := watch.Next(ctx, buf[:0]); ctx.Err() != nil {
			return ctx.Err()
		} else if err != nil {
			snapshot, watch = objects.Cache.SnapshotAndWatch()
			continue
		}
		snapshot = objects.Cache.Snapshot()
	}
}
