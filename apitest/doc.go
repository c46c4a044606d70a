// Package apitest runs a real API server inside a test: for the tests of operators
// and other clients of Kubernetes.
//
//	env := &apitest.Environment{CRDDirectoryPaths: []string{"config/crd/bases"}}
//	config, err := env.Start() // *rest.Config of an administrator: TLS on loopback
//	defer env.Stop()
//
// An Environment has the shape of controller-runtime's envtest.Environment: a suite
// that was written for it runs with the import changed. No binaries are downloaded,
// nothing is written to disk, any number of environments run side by side in one
// process, and Stop leaves nothing behind: no goroutine, no file, no listener.
//
//	apiserver ── store/mem (or etcd in a temporary directory)
//	    │ ── controllers, those that are named
//	    └─── scheduler, if wanted
//
// As in envtest no controllers run unless they are named, and pods need no service
// account. Objects are validated, defaulted and admitted, webhooks are called, RBAC
// holds, as in a cluster.
//
//	environment.go  what can be set;  start.go, controllers.go  how it is started
//	users.go        further users;    crds.go, webhooks.go, files.go  what is installed
package apitest
