package cacher

import "errors"

var (
	// ErrTooOld is returned when the changes after a revision are no longer known.
	ErrTooOld = errors.New("the resource version is too old")
	// ErrEnded is returned by a watch whose cache was reloaded or closed.
	ErrEnded = errors.New("the watch cache was reloaded")
	// ErrGone is returned by a watch of a resource that is no longer served, after its last change.
	ErrGone = errors.New("the resource is no longer served")

	errNoMeta = errors.New("the object has no metadata")
)
