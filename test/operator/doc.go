// Package operator is an operator as they are written with controller-runtime, with a
// test suite as kubebuilder lays it out for envtest. It shows that such a suite runs
// on apitest with the import changed, and nothing else.
//
//	types.go       the kind Site: what it declares and reports
//	reconciler.go  a ConfigMap and a Deployment for each, a finalizer, a status
//	webhooks.go    defaults and validation, called by the API server
//	suite_test.go  the environment;  site_test.go  what is tested in it
//
// It is a Go module of its own, so that controller-runtime is no dependency of the
// product: make operator runs it.
package operator
