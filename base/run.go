package base

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"
)

// A Component is a long-running part. Run blocks until ctx ends or the part
// fails, and returns only after everything that it started has ended. A return
// caused by the end of ctx is not an error.
type Component struct {
	Name string
	Run  func(ctx context.Context) error
}

// RunAll runs components side by side until ctx ends or the first one fails,
// then ends the others and waits for them. The error names the component that
// failed first.
func RunAll(ctx context.Context, components ...Component) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, c := range components {
		group.Go(func() error {
			err := c.Run(ctx)
			switch {
			case err == nil, ctx.Err() != nil && errors.Is(err, ctx.Err()):
				return nil
			default:
				return fmt.Errorf("%s: %w", c.Name, err)
			}
		})
	}
	return group.Wait()
}
