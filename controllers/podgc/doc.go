// Package podgc removes pods that nobody else will: those on nodes that are gone,
// those deleted before they had a node, those on nodes out of service, and the
// oldest finished ones beyond a limit. It is driven by events; a timer runs only
// while a node is missing, for it may just be replaced.
package podgc
