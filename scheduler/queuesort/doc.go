// Package queuesort is the plug-in PrioritySort: pods of higher priority are
// scheduled first, among equals the one that entered the queue first.
package queuesort
