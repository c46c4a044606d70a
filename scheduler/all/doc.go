// Package all is the explicit list of the scheduler's plug-ins: one line each, in the
// order in which they run, with upstream's weights. A new plug-in is one package and
// one line here.
package all
