// Package all lists the authorization modes and puts those that are configured into one
// chain: by names (Options.Modes), or by a file of the kind AuthorizationConfiguration,
// in which there may be several webhooks and which can be read again while the server
// runs. Members of system:masters may do anything, whatever the modes.
package all
