// Package tainttoleration is the plug-in TaintToleration: taints with effect
// NoSchedule or NoExecute keep pods away that do not tolerate them, and nodes with fewer
// intolerable PreferNoSchedule taints are preferred.
package tainttoleration
