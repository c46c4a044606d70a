// Package flowcontrol holds the resources of group flowcontrol.apiserver.k8s.io, one file a kind.
// To add a kind, write its file and name it in Resources.
package flowcontrol
