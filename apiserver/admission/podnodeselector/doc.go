// Package podnodeselector is the admission plug-in PodNodeSelector: the pods of a
// namespace run on the nodes that its annotation, or the configuration, selects. It
// is off by default.
package podnodeselector
