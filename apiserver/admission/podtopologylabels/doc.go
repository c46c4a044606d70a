// Package podtopologylabels is the admission plug-in PodTopologyLabels (KEP-4742): a
// pod that is bound gets the labels with the zone and region of its node, so that its
// containers can read them by the downward API.
package podtopologylabels
