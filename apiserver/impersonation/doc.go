// Package impersonation lets a request act as somebody else, if its sender may.
//
//	headers ── Wanted ──► identity ── Check ──► the user to act as, and by which rule
//
// There are five ways, tried in turn. Four are constrained (KEP-5284): the sender must be
// allowed both to take on the identity and to do with it what the request does. The last
// one is the old verb impersonate, which is about the identity alone.
//
//	way              identity                        verbs on it                   and on the request
//	associated-node  the node that the sender's pod  impersonate:associated-node   impersonate-on:associated-node:<verb>
//	                 runs on
//	arbitrary-node   any node                        impersonate:arbitrary-node    impersonate-on:arbitrary-node:<verb>
//	serviceaccount   a service account               impersonate:serviceaccount    impersonate-on:serviceaccount:<verb>
//	user-info        any other user, with groups     impersonate:user-info         impersonate-on:user-info:<verb>
//	(legacy)         anybody                         impersonate
//
// The resources are nodes, users, groups, serviceaccounts, uids and userextras/<key>: of
// authentication.k8s.io, but for users, groups and serviceaccounts of the legacy way,
// which are of the core group.
package impersonation
