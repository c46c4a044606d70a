package etcd

import (
	"errors"
	"fmt"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/periplus/periplus/store"
)

// translate puts errors of etcd into the words of package store.
func translate(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, rpctypes.ErrCompacted) {
		return store.ErrCompacted
	}
	switch code, text := codeOf(err); {
	case code == codes.InvalidArgument && errors.Is(err, rpctypes.ErrRequestTooLarge),
		code == codes.ResourceExhausted && strings.Contains(text, "larger than max"):
		return fmt.Errorf("%w: %w", store.ErrTooLarge, err)
	case code == codes.Unavailable: // also without a leader, and while one is elected
		return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	return err
}

// codeOf returns the code of an error, be it etcd's own or gRPC's.
func codeOf(err error) (codes.Code, string) {
	var own rpctypes.EtcdError
	if errors.As(err, &own) {
		return own.Code(), own.Error()
	}
	if s, ok := status.FromError(err); ok {
		return s.Code(), s.Message()
	}
	return codes.Unknown, err.Error()
}
