// Package certificatesubjectrestriction refuses requests for certificates of
// group system:masters through the signer for API clients, as upstream's plug-in
// of that name: who may approve requests shall not make administrators.
package certificatesubjectrestriction
