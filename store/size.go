package store

import "context"

// A Sizer is a store that knows what it takes of the disk.
type Sizer interface {
	// Size returns bytes.
	Size(ctx context.Context) (int64, error)
}
