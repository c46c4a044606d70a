// Package noderestriction keeps a kubelet to its own node and the pods bound to
// it, as upstream's plug-in of that name: whoever takes over one machine cannot
// write what belongs to others.
package noderestriction
