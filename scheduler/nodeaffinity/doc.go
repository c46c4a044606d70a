// Package nodeaffinity is the plug-in NodeAffinity: spec.nodeSelector and required node
// affinity, preferred node affinity, and affinity that the profile adds to all pods.
package nodeaffinity
