// Package image is the volume kind image: the files of an image, read-only. There is
// nothing to set up on the node: the kubelet pulls the image when a container that
// mounts it starts, and the container runtime mounts it (KEP-4639).
package image
