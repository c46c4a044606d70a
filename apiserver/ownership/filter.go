package ownership

import "slices"

// A Filter leaves out the fields that a write to an endpoint cannot change: a change
// there is undone before the object is stored, and takes nothing from its owners.
// A nil filter leaves out what nobody owns.
type Filter struct {
	// fields lead on by name. In a filter that leaves out, a nil one is a field that
	// is left out; in one that keeps only what it names, a field that is kept whole.
	fields map[string]*Filter
	only   bool
}

// Except returns a filter that leaves out the fields with these paths, and those that
// nobody owns.
func Except(paths ...[]string) *Filter { return build(false, append(slices.Clone(never), paths...)) }

// Only returns a filter that keeps the fields with these paths. Items of lists on the
// way have no place in a path: all of them are meant.
func Only(paths ...[]string) *Filter { return build(true, paths) }

func build(only bool, paths [][]string) *Filter {
	out := &Filter{fields: map[string]*Filter{}, only: only}
	deeper := map[string][][]string{}
	for _, p := range paths {
		if len(p) == 1 {
			out.fields[p[0]] = nil
		} else {
			deeper[p[0]] = append(deeper[p[0]], p[1:])
		}
	}
	for name, rest := range deeper {
		if _, whole := out.fields[name]; !whole {
			out.fields[name] = build(only, rest)
		}
	}
	return out
}

// field returns what to leave out below a field, and whether it is kept at all.
func (f *Filter) field(name string) (below *Filter, keep bool) {
	if f == nil {
		return nil, true
	}
	below, named := f.fields[name]
	switch {
	case !named:
		return nil, !f.only
	case below == nil:
		return nil, f.only
	}
	return below, true
}

// never are the fields that nobody owns.
var never = [][]string{
	{"apiVersion"}, {"kind"}, {"metadata", "name"}, {"metadata", "namespace"}, {"metadata", "creationTimestamp"}, {"metadata", "selfLink"},
	{"metadata", "uid"}, {"metadata", "generation"}, {"metadata", "managedFields"}, {"metadata", "resourceVersion"},
}

var always = Except()

// within is f, or the filter that leaves out what nobody owns.
func (f *Filter) within() *Filter {
	if f == nil {
		return always
	}
	return f
}
