// Package mutating is the admission plug-in MutatingAdmissionWebhook: programs
// outside of the server are asked one after the other, and each may change the
// object by a JSON patch (RFC 6902).
package mutating
