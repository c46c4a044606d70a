// Package lint checks objects for what production needs.
//
//	files, standard input ── Parse ──┐
//	a cluster ── Live ───────────────┴─► Set ── Check ──► findings, by rule
//
// A rule is a pure function over a Set; families of rules are files, each with one
// table, and rules.go lists them. To add a rule: one entry in its table, one case
// below testdata. Every finding says why it matters and shows the YAML that mends it.
package lint
