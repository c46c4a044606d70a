// Package metric is how components measure themselves: metrics under upstream's names,
// with its levels of stability, whose series cost a look into a map that needs no lock.
//
//	Set ── registry (what Prometheus reads)
//	  └── Family ── Labels ──► Counter, Gauge, Histogram      made when it is first asked for
//
// A Set belongs to one component of one process, never to the program: several servers in
// one process do not share series. Definitions lists what a Set may show, for tests and for
// the documentation. Figures that somebody knows anyway (how many objects there are) are
// not kept a second time: a collector with a Desc of the Set reads them when asked.
package metric
