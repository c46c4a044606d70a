package request

import "context"

// Settled says that a request that lasts has done the work of its beginning, and
// takes the server's time only now and then from now on.
func Settled(ctx context.Context) {
	if s := From(ctx); s != nil && s.Begun != nil {
		s.Begun()
	}
}
