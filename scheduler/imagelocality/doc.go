// Package imagelocality is the plug-in ImageLocality: nodes that already have a pod's
// images are preferred, the more so the bigger the images and the more nodes have
// them, so that one node with an image does not attract all of its pods.
package imagelocality
