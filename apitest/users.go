package apitest

import (
	"errors"

	"k8s.io/client-go/rest"
)

// A User is somebody who is authenticated by a certificate.
type User struct {
	Name   string
	Groups []string
}

// An AuthenticatedUser is one that the server knows.
type AuthenticatedUser struct{ config *rest.Config }

// AddUser makes a user. What they may do, roles and bindings say; the group
// system:masters may do everything. base is what the user's configuration begins with
// (QPS, content types …); nil is empty.
func (e *Environment) AddUser(u User, base *rest.Config) (*AuthenticatedUser, error) {
	if e.server == nil {
		return nil, errors.New("apitest: AddUser needs an environment that has been started")
	}
	config, err := e.server.user(u, base)
	if err != nil {
		return nil, err
	}
	return &AuthenticatedUser{config}, nil
}

// Config is how the user reaches the server.
func (u *AuthenticatedUser) Config() *rest.Config { return rest.CopyConfig(u.config) }

// KubeConfig is the same as a kubeconfig file's content.
func (u *AuthenticatedUser) KubeConfig() ([]byte, error) { return kubeconfig(u.config) }
