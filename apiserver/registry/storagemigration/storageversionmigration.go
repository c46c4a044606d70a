package storagemigration

import (
	"context"

	storagemigrationv1 "k8s.io/api/storagemigration/v1"
	storagemigrationv1beta1 "k8s.io/api/storagemigration/v1beta1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

var storageVersionMigrationHalves = kind.Split(func(obj *storagemigrationv1.StorageVersionMigration) (*storagemigrationv1.StorageVersionMigrationSpec, *storagemigrationv1.StorageVersionMigrationStatus) {
	return &obj.Spec, &obj.Status
})

func storageVersionMigrations() *registry.Resource {
	beta := kind.Alike[storagemigrationv1beta1.StorageVersionMigration, storagemigrationv1beta1.StorageVersionMigrationList, storagemigrationv1.StorageVersionMigration](storagemigrationv1beta1.SchemeGroupVersion)
	s := storageVersionMigrationHalves.MainWithoutGeneration()
	s.Fixed.NoUnconditionalUpdate = true
	s.ValidateCreate = func(_ context.Context, m *storagemigrationv1.StorageVersionMigration) field.ErrorList {
		return migration(m)
	}
	s.ValidateChange = func(_ context.Context, m, old *storagemigrationv1.StorageVersionMigration) field.ErrorList {
		return migrationUpdate(m, old)
	}
	status := storageVersionMigrationHalves.StatusKeepingMeta()
	status.Fixed.NoUnconditionalUpdate = true
	status.ValidateChange = func(_ context.Context, m, old *storagemigrationv1.StorageVersionMigration) field.ErrorList {
		return migrationStatus(m, old)
	}
	return &registry.Resource{
		GVR:      version.WithResource("storageversionmigrations"),
		Kind:     "StorageVersionMigration",
		Singular: "storageversionmigration",
		New:      kind.Make[storagemigrationv1.StorageVersionMigration],
		NewList:  kind.Make[storagemigrationv1.StorageVersionMigrationList],
		Strategy: s,
		Also:     []registry.Served{beta},
		StoredAs: &beta,
		Status:   status,
	}
}
