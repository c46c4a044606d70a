// Package podtolerationrestriction is the admission plug-in PodTolerationRestriction:
// annotations of a namespace, or the configuration, give its pods tolerations and say
// which ones they may have. It is off by default.
package podtolerationrestriction
