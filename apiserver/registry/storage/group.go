package storage

import (
	storagev1 "k8s.io/api/storage/v1"

	"github.com/periplus/periplus/apiserver/registry"
)

// Resources lists the kinds of the group.
func Resources(_ registry.Env) []*registry.Resource {
	return []*registry.Resource{
		storageClasses(),
		volumeAttachments(),
		volumeAttributesClasses(),
		csiDrivers(),
		csiNodes(),
		csiStorageCapacities(),
	}
}

// version is the group and version in which the kinds are stored.
var version = storagev1.SchemeGroupVersion
