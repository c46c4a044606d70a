package client

import (
	"context"

	"k8s.io/client-go/tools/cache"
)

// RunInformer runs an informer until ctx ends. It does not wait for more than that: a
// reflector whose server refuses connections sleeps through the end of its context, for
// up to a minute (client-go, tools/cache, watchList), and ends by itself after that.
func RunInformer(ctx context.Context, informer cache.SharedInformer) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		informer.RunWithContext(ctx)
	}()
	select {
	case <-ended:
	case <-ctx.Done():
	}
}
