package storageversionmigrator

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	storagemigrationv1 "k8s.io/api/storagemigration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	listers "k8s.io/client-go/listers/storagemigration/v1"

	"github.com/periplus/periplus/controllers"
)

const name = "storage-version-migrator-controller"

type migration = storagemigrationv1.StorageVersionMigration

// Controller declares the migrator. Its keys are resources: group as namespace, and name.
func Controller() controllers.Controller {
	migrations := []schema.GroupVersionResource{storagemigrationv1.SchemeGroupVersion.WithResource("storageversionmigrations")}
	// Every kind, and the definitions of custom ones.
	all := append(migrations, definitions, schema.GroupVersionResource{Group: "*", Version: "*", Resource: "*"})
	return controllers.Controller{Name: name, Reads: all, Writes: all, Workers: 5, New: build}
}

type reconciler struct {
	*controllers.Setup
	migrations listers.StorageVersionMigrationLister
	kinds      func() (dynamic.Interface, error)
}

func build(s *controllers.Setup) (controllers.Reconciler, error) {
	config := s.Config()
	if config == nil || s.Metadata == nil {
		return nil, fmt.Errorf("no way to reach objects of any kind: %w", controllers.ErrNotConfigured)
	}
	informer := s.Informers.Storagemigration().V1().StorageVersionMigrations()
	s.Watch(informer.Informer(), controllers.On(func(old, now *migration) {
		m := now
		if m == nil {
			m = old // another one may begin
		}
		s.Queue.Add(controllers.Key{Namespace: m.Spec.Resource.Group, Name: m.Spec.Resource.Resource})
	}))
	return &reconciler{s, informer.Lister(), sync.OnceValues(func() (dynamic.Interface, error) { return dynamic.NewForConfig(config) })}, nil
}

func is(m *migration, t storagemigrationv1.MigrationConditionType) bool {
	return apimeta.IsStatusConditionTrue(m.Status.Conditions, string(t))
}

func ended(m *migration) bool {
	return is(m, storagemigrationv1.MigrationSucceeded) || is(m, storagemigrationv1.MigrationFailed)
}

// Reconcile brings the migrations of a resource forward.
func (r *reconciler) Reconcile(ctx context.Context, key controllers.Key) (time.Duration, error) {
	all, err := r.migrations.List(labels.Everything())
	if err != nil {
		return 0, err
	}
	of := metav1.GroupResource{Group: key.Namespace, Resource: key.Name}
	mine := slices.DeleteFunc(slices.Clone(all), func(m *migration) bool { return m.Spec.Resource != of })
	slices.SortFunc(mine, func(a, b *migration) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	var next *migration
	for _, m := range mine {
		running := is(m, storagemigrationv1.MigrationRunning)
		switch {
		case ended(m):
			if running {
				if err := r.finish(ctx, m.DeepCopy()); err != nil {
					return 0, gone(err)
				}
			}
		case running:
			next = m
		case next == nil:
			next = m
		}
	}
	if next == nil {
		return 0, nil
	}
	again, err := r.advance(ctx, next.DeepCopy())
	return again, gone(err)
}

// gone takes an error away that says that the migration, or what it is about, is not
// there any more: the next event says what is.
func gone(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// advance does what is next for the one migration of a resource that is at work.
func (r *reconciler) advance(ctx context.Context, m *migration) (time.Duration, error) {
	if !is(m, storagemigrationv1.MigrationRunning) {
		if err := r.mark(ctx, m.Spec.Resource, true, "MigrationRunning", fmt.Sprintf("Migration %s is running", m.Name)); err != nil {
			return 0, err
		}
		set(m, storagemigrationv1.MigrationRunning, metav1.ConditionTrue, "MigrationRunning", running(0, 0, nil))
		now, err := r.write(ctx, m)
		if err != nil {
			return 0, err
		}
		m = now
	}
	found, err := r.find(m.Spec.Resource)
	if err != nil {
		return 0, err
	}
	if found == nil || !found.migratable {
		if left := m.CreationTimestamp.Add(time.Minute).Sub(r.Clock.Now()); found == nil && left > 0 {
			return min(left, time.Second), nil // it may just be on its way
		}
		text := "resource does not exist in discovery"
		if found != nil {
			text = fmt.Sprintf("resource %q does not support discovery operations: %v", found.gvr.String(), needed)
		}
		return 0, r.fail(ctx, m, text)
	}
	if m.Status.ResourceVersion == "" {
		list, err := r.Metadata.Resource(found.gvr).List(ctx, metav1.ListOptions{Limit: 1})
		if err != nil {
			return 0, fmt.Errorf("error getting latest resourceVersion for %s: %w", found.gvr.String(), err)
		}
		m.Status.ResourceVersion = list.ResourceVersion
		if m, err = r.write(ctx, m); err != nil {
			return 0, err
		}
	}
	return 0, r.migrate(ctx, m, found)
}

// finish is after the end: the definition is told, and another migration may begin.
func (r *reconciler) finish(ctx context.Context, m *migration) error {
	reason, message := "MigrationFailed", "The migration has failed"
	if is(m, storagemigrationv1.MigrationSucceeded) {
		reason, message = "MigrationSucceeded", "The migration has succeeded"
	}
	if err := r.mark(ctx, m.Spec.Resource, false, reason, message); err != nil {
		return err
	}
	set(m, storagemigrationv1.MigrationRunning, metav1.ConditionFalse, "MigrationCompleted", "Migration completed")
	_, err := r.write(ctx, m)
	return err
}

func (r *reconciler) fail(ctx context.Context, m *migration, message string) error {
	set(m, storagemigrationv1.MigrationFailed, metav1.ConditionTrue, "StorageVersionMigrationFailed", message)
	_, err := r.write(ctx, m)
	return err
}

func set(m *migration, t storagemigrationv1.MigrationConditionType, status metav1.ConditionStatus, reason, message string) {
	apimeta.SetStatusCondition(&m.Status.Conditions, metav1.Condition{Type: string(t), Status: status, Reason: reason, Message: message})
}

func (r *reconciler) write(ctx context.Context, m *migration) (*migration, error) {
	return r.Client.StoragemigrationV1().StorageVersionMigrations().UpdateStatus(ctx, m, metav1.UpdateOptions{})
}

// running is the message of the condition of that name.
func running(left, total int, transient error) string {
	text := "The migration is running"
	switch {
	case total > 0 && left > 0:
		text += fmt.Sprintf(", %d/%d objects not yet migrated", left, total)
	case total > 0:
		text += fmt.Sprintf(", %d objects verified migrated", total)
	}
	if transient != nil {
		text += "; transient error: " + transient.Error()
	}
	return text
}
