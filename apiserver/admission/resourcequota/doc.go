// Package resourcequota is the admission plug-in ResourceQuota: a write that would take
// more than a quota of its namespace allows is refused. What it takes is charged to the
// quota's status before the object is stored, with optimistic concurrency, so that
// however many clients write at once, and to however many servers, no quota is overdrawn.
// A charge for an object that is refused later on is taken back when the controller
// counts again.
package resourcequota
