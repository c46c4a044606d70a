// Package eventratelimit is the admission plug-in EventRateLimit: events are refused
// that come faster than the configuration allows, of the whole server, a namespace, a
// user, or about one object. It is off by default, and needs a configuration.
package eventratelimit
