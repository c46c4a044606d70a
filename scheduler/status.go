package scheduler

import (
	"errors"
	"fmt"
	"strings"
)

// Code is the outcome of a plug-in call.
type Code int

const (
	// Success lets the pod (or the node) pass. A nil *Status means the same.
	Success Code = iota
	// Error is an internal failure; the pod is retried after a back-off.
	Error
	// Unschedulable rejects; removing pods from the node might help.
	Unschedulable
	// UnschedulableAndUnresolvable rejects, and preemption cannot help.
	UnschedulableAndUnresolvable
	// Wait is returned by Permit to hold the pod before binding.
	Wait
	// Skip is returned by PreFilter, PreScore and Bind: leave this plug-in out for this pod.
	Skip
	// Pending rejects until another component acts; the pod returns without back-off.
	Pending
)

var codeNames = [...]string{"Success", "Error", "Unschedulable", "UnschedulableAndUnresolvable", "Wait", "Skip", "Pending"}

func (c Code) String() string { return codeNames[c] }

// A Status is the result of a plug-in call. It is immutable, so plug-ins return
// the same pointer for the same verdict; nil means Success.
type Status struct {
	code    Code
	plugin  string
	reasons []string
	err     error
}

// NewStatus returns a verdict of the named plug-in with its reasons, worded for users.
func NewStatus(plugin string, code Code, reasons ...string) *Status {
	return &Status{code: code, plugin: plugin, reasons: reasons}
}

// ErrorStatus returns err as a Status, nil for nil.
func ErrorStatus(plugin string, err error) *Status {
	if err == nil {
		return nil
	}
	return &Status{code: Error, plugin: plugin, reasons: []string{err.Error()}, err: err}
}

// rejectStatus carries err, which explains a rejection.
func rejectStatus(code Code, err error) *Status {
	return &Status{code: code, reasons: []string{err.Error()}, err: err}
}

// Code returns the outcome; Success for nil.
func (s *Status) Code() Code {
	if s == nil {
		return Success
	}
	return s.code
}

// Plugin returns the name of the plug-in that returned s.
func (s *Status) Plugin() string {
	if s == nil {
		return ""
	}
	return s.plugin
}

// Reasons returns why; the slice must not be changed.
func (s *Status) Reasons() []string {
	if s == nil {
		return nil
	}
	return s.reasons
}

// Message returns the reasons as one string.
func (s *Status) Message() string { return strings.Join(s.Reasons(), ", ") }

// IsSuccess reports whether s lets pass.
func (s *Status) IsSuccess() bool { return s == nil || s.code == Success }

// IsSkip reports whether s leaves the plug-in out.
func (s *Status) IsSkip() bool { return s != nil && s.code == Skip }

// IsWait reports whether s holds the pod.
func (s *Status) IsWait() bool { return s != nil && s.code == Wait }

// IsRejected reports whether s says that the pod does not fit.
func (s *Status) IsRejected() bool {
	switch s.Code() {
	case Unschedulable, UnschedulableAndUnresolvable, Pending:
		return true
	default:
		return false
	}
}

// Err returns nil for Success and an error for anything else.
func (s *Status) Err() error {
	switch {
	case s.IsSuccess():
		return nil
	case s.err != nil:
		return s.err
	default:
		return errors.New(s.Message())
	}
}

func (s *Status) String() string {
	if s.IsSuccess() {
		return Success.String()
	}
	return fmt.Sprintf("%s (%s): %s", s.code, s.plugin, s.Message())
}
