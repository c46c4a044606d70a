// Package sidecar has the duties of the programs that are usually deployed beside
// a CSI driver, as controllers that run on the node that has the driver:
//
//	provisioner  CreateVolume for claims, DeleteVolume for released volumes
//	attacher     ControllerPublish and -Unpublish for VolumeAttachments
//	resizer      ControllerExpand, and NodeExpand of what is mounted here
//
// The built-in driver is always served. Another driver is served when its
// CSIDriver object has the annotation csi.periplus.io/sidecars: "true": who
// deploys the usual sidecars goes on to do so.
//
// Each node serves its own drivers, as upstream's provisioner does when it is
// deployed on each node: a claim is the business of the node that the scheduler
// has chosen for it, else of the node that writes its name there first.
package sidecar
