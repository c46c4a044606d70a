// Package schedulertest helps to test scheduler plug-ins without a cluster: builders of
// pods and nodes, and Run, which shows what a plug-in alone thinks of each node.
package schedulertest
