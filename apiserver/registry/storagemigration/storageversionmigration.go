package storagemigration

import (
	storagemigrationv1 "k8s.io/api/storagemigration/v1"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

var storageVersionMigrationHalves = kind.Split(func(obj *storagemigrationv1.StorageVersionMigration) (*storagemigrationv1.StorageVersionMigrationSpec, *storagemigrationv1.StorageVersionMigrationStatus) {
	return &obj.Spec, &obj.Status
})

func storageVersionMigrations() *registry.Resource {
	s := storageVersionMigrationHalves.MainWithoutGeneration()
	s.Fixed.NoUnconditionalUpdate = true
	return &registry.Resource{
		GVR:      version.WithResource("storageversionmigrations"),
		Kind:     "StorageVersionMigration",
		Singular: "storageversionmigration",
		New:      kind.Make[storagemigrationv1.StorageVersionMigration],
		NewList:  kind.Make[storagemigrationv1.StorageVersionMigrationList],
		Strategy: s,
		Status:   storageVersionMigrationHalves.StatusKeepingMeta(),
	}
}
