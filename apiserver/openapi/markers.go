package openapi

import (
	_ "embed" // of the markers
	"encoding/json"
	"fmt"
	"iter"
	"strings"
)

//go:embed zz_generated.markers.txt
var markersText string

// A typeMark is what comments say about a type.
type typeMark struct {
	atomic bool
	enum   []any
	fields map[string]*fieldMark // by JSON name
}

// A fieldMark is what comments say about a field.
type fieldMark struct {
	required, optional bool // against what omitempty says
	list               string
	keys               []any
	mapType            string
	value              any // default
}

// readMarkers parses the generated file: types by import path and name.
func readMarkers(text string) (map[string]*typeMark, error) {
	types := map[string]*typeMark{}
	var current *typeMark
	for line := range strings.Lines(text) {
		words, rest := strings.TrimSpace(line), ""
		if head, about, ok := strings.Cut(words, "= "); ok && head == "" {
			name, about, _ := strings.Cut(about, " ")
			current = &typeMark{fields: map[string]*fieldMark{}}
			types[name] = current
			for k, v := range settings(about) {
				switch k {
				case "struct":
					current.atomic = v == "atomic"
				case "enum":
					current.enum = list(v)
				}
			}
			continue
		}
		if current == nil {
			return nil, fmt.Errorf("marker outside a type: %q", line)
		}
		f := &fieldMark{}
		words, rest, _ = strings.Cut(words, " ")
		current.fields[words] = f
		for k, v := range settings(rest) {
			switch k {
			case "required":
				f.required = true
			case "optional":
				f.optional = true
			case "list":
				f.list = v
			case "keys":
				f.keys = list(v)
			case "map":
				f.mapType = v
			case "default":
				if err := json.Unmarshal([]byte(v), &f.value); err != nil {
					return nil, fmt.Errorf("default of %s: %w", words, err)
				}
			}
		}
	}
	return types, nil
}

// settings yields "a b=c" as a:"" and b:"c". A default is last, as it may contain spaces.
func settings(s string) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for s != "" {
			word, rest, _ := strings.Cut(s, " ")
			if strings.HasPrefix(word, "default=") {
				word, rest = s, ""
			}
			k, v, _ := strings.Cut(word, "=")
			if !yield(k, v) {
				return
			}
			s = rest
		}
	}
}

func list(s string) []any {
	var out []any
	for _, v := range strings.Split(s, ",") {
		out = append(out, v)
	}
	return out
}
