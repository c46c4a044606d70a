// Package request holds what the stations of the pipeline know about one
// request: its place in the API (Info), who sent it, and the warnings for the
// answer. They share one State in the request's context.
package request
