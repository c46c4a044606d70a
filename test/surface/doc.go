// Package surface compares what a running API server serves with what upstream's
// serves: every path and method, every resource with its names, verbs and storage.
//
//	upstream's module ── upstream (make surface) ── testdata/operations.txt ──┐
//	                                                testdata/resources.txt ───┴── tests ── apiserver
//
// The tests need neither upstream's module nor a network. Alpha groups, which no
// server has on unless it is told to, are left out.
package surface
