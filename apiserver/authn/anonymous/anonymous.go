package anonymous

import (
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/request/anonymous"
)

// New returns an authenticator of everybody, on the paths of the configuration if it
// names any; nil when it is off. Without a configuration it is on.
func New(c *apiserver.AnonymousAuthConfig) authenticator.Request {
	if c == nil {
		return anonymous.NewAuthenticator(nil)
	}
	if !c.Enabled {
		return nil
	}
	return anonymous.NewAuthenticator(c.Conditions)
}
