// Package why finds out why an object does not do what it should.
//
//	object ──► walk (tree.go): what it needs: pods, claims, Services, nodes …
//	             │ each object meets the rules of its kind
//	             ▼
//	           findings: causes, signs, effects ──► Report: root cause first
//
// A rule is a pure function over an insight.Snapshot. Rules are kept in families,
// one file each, as one table each; rules.go lists the families. To add a rule: one
// entry in its family's table and one case below testdata. To add what is read of a
// cluster: load.go, for facts that cost a request of their own (logs, ports,
// names), else the table in insight/read.go.
//
// Rules prefer what a status says to what an event says, and an event to a guess:
// events are lost first. A rule says what it saw as evidence, in the cluster's own words.
package why
