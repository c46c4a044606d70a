package etcd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	"go.uber.org/zap"
)

// Config describes an embedded etcd member.
type Config struct {
	Dir    string // data directory, created if absent
	Socket string // unix socket for clients; "" for none
	// Tick is the Raft tick. A single member elects itself within five of them,
	// which is most of the time that a restart takes. Default 20 ms.
	Tick time.Duration
	Log  *slog.Logger
	// NoSync skips fsync. Only for tests: a power failure loses data.
	NoSync bool
}

// Start starts an embedded single member and returns when it can serve. A
// directory that is not etcd's, or is in use by another process, is an error.
func Start(ctx context.Context, config Config) (*Store, error) {
	if config.Tick == 0 {
		config.Tick = 20 * time.Millisecond
	}
	if err := os.MkdirAll(config.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("etcd data directory: %w", err)
	}
	c := embed.NewConfig()
	c.Name = "periplus"
	c.Dir = config.Dir
	c.TickMs = uint(config.Tick.Milliseconds())
	c.ElectionMs = 5 * c.TickMs
	c.UnsafeNoFsync = config.NoSync
	// Writes are durable in the write-ahead log before they are acknowledged; this
	// is only how often they go from memory into the database file.
	c.BackendBatchInterval = time.Second
	c.QuotaBackendBytes = 8 << 30
	c.AutoCompactionMode = "periodic"
	c.AutoCompactionRetention = "5m"
	c.EnableGRPCGateway = false
	c.WarningApplyDuration = time.Second
	c.WarningUnaryRequestDuration = 2 * time.Second
	c.MaxTxnOps = 1024
	c.SnapshotCount = 10000
	// The peer address is a name only: a single member has nobody to listen to.
	peer := url.URL{Scheme: "http", Host: "localhost:2380"}
	c.AdvertisePeerUrls, c.ListenPeerUrls = []url.URL{peer}, nil
	c.InitialCluster = c.Name + "=" + peer.String()
	c.ListenClientUrls = nil
	c.AdvertiseClientUrls = []url.URL{{Scheme: "http", Host: "localhost:2379"}}
	if config.Socket != "" {
		if err := os.MkdirAll(filepath.Dir(config.Socket), 0o700); err != nil {
			return nil, fmt.Errorf("etcd socket directory: %w", err)
		}
		// A socket file left by a killed process cannot be bound again.
		if err := os.Remove(config.Socket); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("etcd socket: %w", err)
		}
		c.ListenClientUrls = []url.URL{{Scheme: "unix", Path: config.Socket}}
	}
	log := zap.NewNop()
	if config.Log != nil {
		log = zap.New(core{log: config.Log})
	}
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(log)

	server, err := embed.StartEtcd(c)
	if err != nil {
		return nil, fmt.Errorf("start etcd in %s: %w", config.Dir, err)
	}
	select {
	case <-server.Server.ReadyNotify():
	case err := <-server.Err():
		server.Close()
		return nil, fmt.Errorf("etcd in %s: %w", config.Dir, err)
	case <-ctx.Done():
		server.Close()
		return nil, ctx.Err()
	}
	client := v3client.New(server.Server)
	return &Store{
		client:   client,
		revision: server.Server.KV().Rev,
		close: func() error {
			err := client.Close()
			server.Close()
			if errors.Is(err, context.Canceled) {
				return nil
			}
			return err
		},
	}, nil
}
