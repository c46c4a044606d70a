package csi

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	csipb "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
)

// AccessMode says in CSI's words what Kubernetes' access modes allow.
func AccessMode(modes []corev1.PersistentVolumeAccessMode, c Capabilities) csipb.VolumeCapability_AccessMode_Mode {
	has := map[corev1.PersistentVolumeAccessMode]bool{}
	for _, m := range modes {
		has[m] = true
	}
	switch {
	case has[corev1.ReadWriteMany]:
		return csipb.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER
	case has[corev1.ReadOnlyMany] && has[corev1.ReadWriteOnce]:
		return csipb.VolumeCapability_AccessMode_MULTI_NODE_SINGLE_WRITER
	case has[corev1.ReadOnlyMany]:
		return csipb.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY
	case has[corev1.ReadWriteOncePod]:
		if c.MultiWriter {
			return csipb.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER
		}
		return csipb.VolumeCapability_AccessMode_SINGLE_NODE_WRITER
	case has[corev1.ReadWriteOnce]:
		if c.MultiWriter {
			return csipb.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER
		}
		return csipb.VolumeCapability_AccessMode_SINGLE_NODE_WRITER
	}
	return csipb.VolumeCapability_AccessMode_UNKNOWN
}

// Capability describes how a volume is to be used.
func Capability(block bool, mode csipb.VolumeCapability_AccessMode_Mode, fsType string, options []string, group string) *csipb.VolumeCapability {
	c := &csipb.VolumeCapability{AccessMode: &csipb.VolumeCapability_AccessMode{Mode: mode}}
	if block {
		c.AccessType = &csipb.VolumeCapability_Block{Block: &csipb.VolumeCapability_BlockVolume{}}
	} else {
		c.AccessType = &csipb.VolumeCapability_Mount{Mount: &csipb.VolumeCapability_MountVolume{FsType: fsType, MountFlags: options, VolumeMountGroup: group}}
	}
	return c
}

// IsBlock reports whether a volume is used as a raw device.
func IsBlock(mode *corev1.PersistentVolumeMode) bool {
	return mode != nil && *mode == corev1.PersistentVolumeBlock
}

// AttachmentName is the name of the VolumeAttachment of a volume on a node, as
// upstream makes it.
func AttachmentName(handle, driver, node string) string {
	sum := sha256.Sum256([]byte(handle + driver + node))
	return "csi-" + hex.EncodeToString(sum[:])
}

// Final reports whether an error says that the driver has done nothing and will
// not: after any other error the operation may still be under way.
func Final(err error) bool {
	s, ok := status.FromError(err)
	if !ok {
		return true
	}
	switch s.Code() {
	case codes.Canceled, codes.DeadlineExceeded, codes.Unavailable, codes.ResourceExhausted, codes.Aborted:
		return false
	}
	return true
}

// Message is what a driver's error says to people: as upstream prints it.
func Message(err error) string {
	if s, ok := status.FromError(err); ok {
		return fmt.Sprintf("rpc error: code = %s desc = %s", s.Code(), s.Message())
	}
	return err.Error()
}

// The reserved parameters of storage classes.
const (
	ParameterFSType               = "csi.storage.k8s.io/fstype"
	parameterPrefix               = "csi.storage.k8s.io/"
	ParameterProvisionerSecret    = parameterPrefix + "provisioner-secret-name"
	ParameterProvisionerNamespace = parameterPrefix + "provisioner-secret-namespace"
	ParameterPublishSecret        = parameterPrefix + "controller-publish-secret-name"
	ParameterPublishNamespace     = parameterPrefix + "controller-publish-secret-namespace"
	ParameterStageSecret          = parameterPrefix + "node-stage-secret-name"
	ParameterStageNamespace       = parameterPrefix + "node-stage-secret-namespace"
	ParameterNodePublishSecret    = parameterPrefix + "node-publish-secret-name"
	ParameterNodePublishNamespace = parameterPrefix + "node-publish-secret-namespace"
	ParameterExpandSecret         = parameterPrefix + "controller-expand-secret-name"
	ParameterExpandNamespace      = parameterPrefix + "controller-expand-secret-namespace"
	ParameterNodeExpandSecret     = parameterPrefix + "node-expand-secret-name"
	ParameterNodeExpandNamespace  = parameterPrefix + "node-expand-secret-namespace"
)
