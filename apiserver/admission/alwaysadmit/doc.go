// Package alwaysadmit is the admission plug-in AlwaysAdmit, which has no objection to
// anything. Upstream still knows the name; it is off by default.
package alwaysadmit
