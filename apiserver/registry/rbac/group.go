package rbac

import (
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/periplus/periplus/apiserver/registry"
)

// Resources lists the kinds of the group.
func Resources(_ registry.Env) []*registry.Resource {
	return []*registry.Resource{
		roles(),
		roleBindings(),
		clusterRoles(),
		clusterRoleBindings(),
	}
}

// version is the group and version in which the kinds are stored.
var version = rbacv1.SchemeGroupVersion
