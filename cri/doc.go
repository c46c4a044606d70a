// Package cri is the seam between the kubelet and a container runtime: the
// Container Runtime Interface v1 of k8s.io/cri-api, as Go interfaces.
//
//	kubelet ── cri.Runtime, cri.Images ──┬── containers (embedded, direct calls)
//	                                     └── Dial (gRPC: containerd, CRI-O, another peri)
//
// The methods have the shape of the generated gRPC servers, so the embedded
// runtime is passed as it is, and Serve offers any implementation on a socket
// for crictl and other kubelets. Add a method here when the kubelet needs
// another RPC; the two implementations follow.
package cri
