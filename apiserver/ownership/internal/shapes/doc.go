// Package shapes makes the table of the types that the server stores, as far as they
// are not compared as usual (see ownership.shape): from the same definitions that OpenAPI
// shows and server-side apply merges by.
package shapes
