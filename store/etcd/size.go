package etcd

import (
	"context"

	"github.com/periplus/periplus/store"
)

var _ store.Sizer = (*Store)(nil)

// Size implements store.Sizer: what the database file takes.
func (s *Store) Size(ctx context.Context) (int64, error) {
	if s.space != nil {
		return s.space.server.Server.Backend().Size(), nil
	}
	var last error
	for _, endpoint := range s.client.Endpoints() {
		status, err := s.client.Status(ctx, endpoint)
		if err == nil {
			return status.DbSize, nil
		}
		last = translate(err)
	}
	return 0, last
}
