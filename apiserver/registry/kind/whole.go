package kind

import (
	"context"

	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"github.com/periplus/periplus/apiserver/registry"
)

// Counted returns the strategy of a kind without status that has a generation;
// part points to what raises it.
func Counted[T Object, S any](part func(obj T) *S) registry.Funcs[T] {
	return registry.Funcs[T]{
		PrepareCreate: func(_ context.Context, obj T) { obj.SetGeneration(1) },
		PrepareUpdate: func(_ context.Context, obj, old T) {
			SetGeneration(obj, old, !apiequality.Semantic.DeepEqual(part(obj), part(old)))
		},
	}
}
