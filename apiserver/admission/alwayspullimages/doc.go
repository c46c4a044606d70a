// Package alwayspullimages is the admission plug-in AlwaysPullImages: images are
// asked for at their registry whenever a pod starts, so that nobody uses a private
// one because it happens to be on a node. It is off by default.
package alwayspullimages
