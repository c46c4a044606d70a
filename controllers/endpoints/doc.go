// Package endpoints publishes the ready pods of each Service as the older
// Endpoints object (deprecated since v1.33, still read by many programs). It
// follows the same events as the EndpointSlice controller. The object of a
// Service without selector is its author's and is left alone.
package endpoints
