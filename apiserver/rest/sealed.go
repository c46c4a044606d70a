package rest

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Sealed tells of entries that are kept encrypted. Without its functions none are.
type Sealed struct {
	// Stale reports whether what is stored under a key would be encrypted otherwise now:
	// then it is written again, even if nothing else changes.
	Stale func(ctx context.Context, key string) bool
	// Unreadable returns why an entry whose key begins with prefix cannot be read.
	Unreadable func(prefix string) error
}

// stale reports whether an entry is to be written again.
func (s Sealed) stale(ctx context.Context, key string) bool {
	return s.Stale != nil && s.Stale(ctx, key)
}

// check returns an error if an entry below a prefix cannot be read.
func (s Sealed) check(prefix string) error {
	if s.Unreadable == nil {
		return nil
	}
	if err := s.Unreadable(prefix); err != nil {
		return apierrors.NewInternalError(err)
	}
	return nil
}
