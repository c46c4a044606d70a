// Package capture is the init step of a pod of the mesh: it reads the flags that
// people know from Istio's and puts the redirect rules into the pod's network.
package capture
