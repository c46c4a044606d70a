package server

import (
	"bytes"
	"errors"
	"time"
)

// A logLine is one line of a container's log as the CRI prescribes it:
//
//	2016-10-06T00:17:09.669794202Z stdout P a long line is cut, this is not its end
//	2016-10-06T00:17:09.669794203Z stderr F a full line, or the end of one
type logLine struct {
	time    time.Time
	stderr  bool
	partial bool
	content []byte // with its line feed unless partial; part of the input
}

// layoutOut always has nine digits, so that columns line up.
const layoutOut = "2006-01-02T15:04:05.000000000Z07:00"

var errLogLine = errors.New("not a line of a CRI log")

// parseLogLine reads one line, with or without its line feed.
func parseLogLine(line []byte) (logLine, error) {
	var l logLine
	stamp, rest, ok := bytes.Cut(line, []byte{' '})
	if !ok {
		return l, errLogLine
	}
	var err error
	if l.time, err = time.Parse(time.RFC3339Nano, string(stamp)); err != nil {
		return l, errLogLine
	}
	stream, rest, ok := bytes.Cut(rest, []byte{' '})
	switch {
	case !ok:
		return l, errLogLine
	case string(stream) == "stderr":
		l.stderr = true
	case string(stream) != "stdout":
		return l, errLogLine
	}
	tags, content, ok := bytes.Cut(rest, []byte{' '})
	if !ok {
		return l, errLogLine
	}
	first, _, _ := bytes.Cut(tags, []byte{':'}) // further tags are for the future
	l.partial = string(first) == "P"
	if l.partial {
		content = bytes.TrimSuffix(content, []byte{'\n'})
	}
	l.content = content
	return l, nil
}
