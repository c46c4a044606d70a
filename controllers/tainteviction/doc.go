// Package tainteviction deletes pods from nodes with NoExecute taints that they do
// not tolerate, or after the time for which they tolerate them. A timer exists
// only for a pod with such a deadline.
package tainteviction
