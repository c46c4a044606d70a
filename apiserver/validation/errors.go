package validation

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// errorList collects errors; its methods save the repetition of append.
type errorList struct{ list field.ErrorList }

func (e *errorList) add(errs ...*field.Error) { e.list = append(e.list, errs...) }

func (e *errorList) required(path *field.Path, detail string) { e.add(field.Required(path, detail)) }

func (e *errorList) invalid(path *field.Path, value any, detail string) {
	e.add(field.Invalid(path, value, detail))
}

// invalidAll adds one error for each message.
func (e *errorList) invalidAll(path *field.Path, value any, messages []string) {
	for _, m := range messages {
		e.invalid(path, value, m)
	}
}

func (e *errorList) forbidden(path *field.Path, detail string) { e.add(field.Forbidden(path, detail)) }

func (e *errorList) duplicate(path *field.Path, value any) { e.add(field.Duplicate(path, value)) }

func (e *errorList) notFound(path *field.Path, value any) { e.add(field.NotFound(path, value)) }

func (e *errorList) nonnegative(path *field.Path, value int64) { e.add(Nonnegative(value, path)...) }

// oneOf adds an error unless value is one of supported. An empty value is
// reported as missing.
func oneOf[T ~string](e *errorList, path *field.Path, value T, supported ...T) {
	switch {
	case slices.Contains(supported, value):
	case value == "":
		e.required(path, "")
	default:
		e.add(field.NotSupported(path, value, supported))
	}
}

// oneOfOrEmpty is oneOf for values that upstream reports as not supported when empty.
func oneOfOrEmpty[T ~string](e *errorList, path *field.Path, value T, supported ...T) {
	if !slices.Contains(supported, value) {
		e.add(field.NotSupported(path, value, supported))
	}
}

// Most fields are as they should be: of a field named to one of the following its path is
// made when there is an error to tell of.

func oneOfChild[T ~string](e *errorList, at *field.Path, name string, value T, supported ...T) {
	if !slices.Contains(supported, value) {
		oneOf(e, at.Child(name), value, supported...)
	}
}

func invalidChild[T any](e *errorList, at *field.Path, name string, value T, messages []string) {
	if len(messages) > 0 {
		e.invalidAll(at.Child(name), value, messages)
	}
}

func (e *errorList) nonnegativeChild(at *field.Path, name string, value int64) {
	if value < 0 {
		e.nonnegative(at.Child(name), value)
	}
}

// names remembers names to find duplicates.
type names map[string]bool

// seen reports whether name was there before, and remembers it.
func (n names) seen(name string) bool {
	if n[name] {
		return true
	}
	n[name] = true
	return false
}
