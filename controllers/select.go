package controllers

import (
	"fmt"
	"slices"
	"strings"
)

// Select returns the controllers of list that the items choose, in list order.
// An item is "*" (all that are on by default), a name, or a name with a minus in
// front; a name may leave out its "-controller". The first match of a name wins,
// as upstream's --controllers.
func Select(list []Controller, items []string) ([]Controller, error) {
	if len(items) == 0 {
		items = []string{"*"}
	}
	known := func(item string) bool {
		return slices.ContainsFunc(list, func(c Controller) bool { return named(c, item) })
	}
	for _, item := range items {
		if name := strings.TrimPrefix(item, "-"); item != "*" && !known(name) {
			return nil, fmt.Errorf("%q is not in the list of known controllers: %s", name, strings.Join(names(list), ", "))
		}
	}
	var out []Controller
	for _, c := range list {
		if chosen(c, items) {
			out = append(out, c)
		}
	}
	return out, nil
}

func chosen(c Controller, items []string) bool {
	star := false
	for _, item := range items {
		switch {
		case item == "*":
			star = true
		case named(c, item):
			return true
		case named(c, strings.TrimPrefix(item, "-")):
			return false
		}
	}
	return star && !c.Off
}

func named(c Controller, item string) bool {
	return item == c.Name || item == strings.TrimSuffix(c.Name, "-controller")
}

func names(list []Controller) []string {
	out := make([]string, len(list))
	for i, c := range list {
		out[i] = c.Name
	}
	slices.Sort(out)
	return out
}
