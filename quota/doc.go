// Package quota measures what objects take of their namespace's ResourceQuotas. It is
// pure: the admission plug-in ResourceQuota charges with it, the controller
// resourcequota counts with it.
//
//	Usage      an object ──► amounts, by the names that a quota's hard limits use
//	Covers     which of a quota's names a kind of object can take from
//	Matches    whether a quota's scopes select an object
//	Missing    what containers must say so that they can be counted
//
// Names and rules are those of Kubernetes 1.37.
package quota
