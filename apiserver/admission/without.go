package admission

import "slices"

// Without returns the chain but for the plug-ins of these names.
func (c Chain) Without(names []string) Chain {
	if len(names) == 0 {
		return c
	}
	return slices.DeleteFunc(slices.Clone(c), func(p Plugin) bool { return slices.Contains(names, p.Name()) })
}
