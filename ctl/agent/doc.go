// Package agent is "peri agent": a node of a cluster whose servers are elsewhere.
package agent
