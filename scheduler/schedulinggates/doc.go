// Package schedulinggates is the plug-in SchedulingGates: a pod with
// spec.schedulingGates does not enter the queue before the last gate is gone (KEP-3521).
package schedulinggates
