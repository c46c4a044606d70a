// Command critest runs the CRI tools' validation suite (sigs.k8s.io/cri-tools) against
// the embedded container runtime:
//
//	build      critest of the module in go.mod, in build/critest
//	images     what the tests pull, under upstream's names, made here and served by a
//	           registry in memory, which is the mirror of all others
//	runtime    "peri containers" alone in a machine without a way out (test/netlab)
//	run        the suite, and the tests of streams once more over WebSocket
//	report     passed, failed, skipped; logs and ginkgo's reports in -logs; -docs renews
//	           the page
//
// It is started in the repository's root (make critest).
// One image cannot be made here as upstream has it: the one that a test pulls by its
// digest. The suite is compiled with the digest of ours in its place.
//
//	main.go     the flags, the order of things
//	build.go    the suite
//	image.go    images
//	report.go   ginkgo's reports, and the page
//	tools.go    keeps what is built, but not imported, in go.mod
package main
