// Package resourcequota counts what the objects of a namespace take of its quotas, and
// writes it into their status, where admission charges new objects. It counts when a
// quota is made or changed, when something that was counted goes, and every five minutes:
// admission charges for objects that another plug-in refuses as well. Kinds that are only
// counted are watched only while a quota names one of them.
package resourcequota
