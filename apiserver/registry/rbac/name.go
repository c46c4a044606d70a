package rbac

import "k8s.io/apimachinery/pkg/api/validation/path"

// objectName checks the names of roles and bindings: anything that can be one
// segment of a URL path.
func objectName(name string, _ bool) []string {
	return path.IsValidPathSegmentName(name)
}
