package kind

import (
	"bytes"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/periplus/periplus/apiserver/registry"
)

// Alike returns a further version of a kind whose fields have the same names and
// meanings as those of the stored version: T and L are its object and its list, S
// is the stored object.
func Alike[T, L, S any, PT pointer[T], PL pointer[L], PS pointer[S]](gv schema.GroupVersion) registry.Served {
	return Rearranged[T, L, S, PT, PL, PS](gv, nil, nil)
}

// Rearranged is Alike for a version in which some fields are elsewhere. toStored
// and toServed move them in the JSON form of an object; nil moves nothing.
func Rearranged[T, L, S any, PT pointer[T], PL pointer[L], PS pointer[S]](gv schema.GroupVersion, toStored, toServed func(obj map[string]any)) registry.Served {
	return registry.Served{
		GV: gv, New: Make[T, PT], NewList: Make[L, PL],
		From: func(stored runtime.Object) (runtime.Object, error) { return through(stored, PT(new(T)), toServed) },
		To:   func(served runtime.Object) (runtime.Object, error) { return through(served, PS(new(S)), toStored) },
	}
}

type pointer[T any] interface {
	*T
	runtime.Object
}

// through reads from as JSON into to, which is returned without type metadata.
func through(from, to runtime.Object, move func(map[string]any)) (runtime.Object, error) {
	data, err := json.Marshal(from)
	if err != nil {
		return nil, fmt.Errorf("convert %T: %w", from, err)
	}
	if move != nil {
		tree := map[string]any{}
		d := json.NewDecoder(bytes.NewReader(data))
		d.UseNumber() // int64 must not become a float
		if err := d.Decode(&tree); err != nil {
			return nil, fmt.Errorf("convert %T: %w", from, err)
		}
		move(tree)
		if data, err = json.Marshal(tree); err != nil {
			return nil, fmt.Errorf("convert %T: %w", from, err)
		}
	}
	if err := json.Unmarshal(data, to); err != nil {
		return nil, fmt.Errorf("convert %T to %T: %w", from, to, err)
	}
	to.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	return to, nil
}
