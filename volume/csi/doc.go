// Package csi mounts volumes of CSI drivers: claims and inline volumes.
//
//	attach (where the driver wants it) ─► NodeStage, once a volume ─► NodePublish, once a pod
//	                                      NodeUnstage, after the last ◄─ NodeUnpublish
//
// What is mounted is written to disk beside the mounts, in upstream's layout, so
// that a restarted process, or another kubelet, can undo it:
//
//	<root>/pods/<uid>/volumes/kubernetes.io~csi/<volume>/{mount,vol_data.json}
//	<root>/plugins/kubernetes.io/csi/<driver>/<sha256 of the handle>/{globalmount,vol_data.json}
//
// References to a staged volume are the vol_data.json files of pods that name it:
// nothing is counted in memory.
package csi
