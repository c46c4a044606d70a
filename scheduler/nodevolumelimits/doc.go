// Package nodevolumelimits is the plug-in NodeVolumeLimits: a node takes as many
// volumes of a driver as its CSINode says.
package nodevolumelimits
