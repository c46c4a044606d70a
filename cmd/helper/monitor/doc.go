// Command monitor is the parent of a node's containers: see containers/monitor.
// peri carries it inside, extracts it once per version and starts it.
package main
