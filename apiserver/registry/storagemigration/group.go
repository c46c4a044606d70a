package storagemigration

import (
	storagemigrationv1 "k8s.io/api/storagemigration/v1"

	"github.com/periplus/periplus/apiserver/registry"
)

// Resources lists the kinds of the group.
func Resources(_ registry.Env) []*registry.Resource {
	return []*registry.Resource{
		storageVersionMigrations(),
	}
}

// version is the group and version in which the kinds are stored.
var version = storagemigrationv1.SchemeGroupVersion
