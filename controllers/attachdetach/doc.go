// Package attachdetach asks for volumes to be attached to the nodes that need them:
// one VolumeAttachment for each volume and node, for drivers that want that. The
// driver's attacher does the work; the kubelet waits for it.
//
// A key is a node. A volume is detached when no pod of the node uses it any more:
// a pod's object goes only after its volumes were unmounted.
package attachdetach
