// Package priority is the admission plug-in Priority: it turns a pod's priority
// class into its number and preemption policy.
package priority
