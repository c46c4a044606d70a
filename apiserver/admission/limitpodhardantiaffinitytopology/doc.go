// Package limitpodhardantiaffinitytopology is the admission plug-in
// LimitPodHardAntiAffinityTopology: a pod may keep others off its node by required
// anti-affinity, but not off a whole zone. It is off by default.
package limitpodhardantiaffinitytopology
