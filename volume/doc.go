// Package volume puts a pod's volumes on the node before its containers start
// and keeps them up to date.
//
//	kubelet ── Host.Mount(pod) ── Plugin of the volume's kind (volume/<kind>)
//	                                   │ reads through Sources
//	                                   ▼
//	           <root>/pods/<uid>/volumes/kubernetes.io~<kind>/<name>
//
// The contract and the Host are here, a volume kind is a child folder and one
// line in volume/all, volume/volumetest is the suite that each must pass.
package volume
