// Package podtopologyspread is the plug-in PodTopologySpread (KEP-895): the numbers of
// a group's pods in the domains of a topology differ by at most maxSkew.
//
// constraint.go parses a pod's constraints and says which nodes count; filter.go keeps
// those with DoNotSchedule; score.go prefers nodes by those with ScheduleAnyway.
// Constraints come from the pod alone: there are no cluster-wide default constraints.
package podtopologyspread
