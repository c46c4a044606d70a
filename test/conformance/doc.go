// Command conformance runs upstream's end-to-end tests against Periplus:
//
//	build      e2e.test, ginkgo and agnhost of k8s.io/kubernetes, in build/conformance
//	images     what the tests pull, under upstream's names: agnhost as built, the rest
//	           from Debian's packages; dropped into the nodes' image directories
//	cluster    machines without a way out (test/netlab): a server, and agents
//	run        the tests that match -focus, -procs at once
//	report     passed, failed, skipped per group; logs and ginkgo's report in -logs;
//	           -docs renews the lines of a page for the tests that ran
//
// It is started in the repository's root (make conformance).
// It is a module of its own: upstream's tests import half of the Kubernetes repository.
//
//	main.go     the flags, the order of things
//	build.go    programs
//	image.go    images
//	cluster.go  machines
//	report.go   ginkgo's report, and the page
//	tools.go    keeps what is built, but not imported, in go.mod
package main
