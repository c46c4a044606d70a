package etcd

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"expvar"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"
)

// Config describes an embedded etcd member.
type Config struct {
	Dir    string // data directory, created if absent
	Socket string // unix socket for clients; "" for none
	// Tick is the Raft tick, default 1 s. A single member needs no ticks to lead,
	// and each costs a wake-up.
	Tick time.Duration
	Log  *slog.Logger
	// Quota is the most bytes that the database may take, default 8 GiB.
	Quota int64
	// Cluster makes it one of several members; nil: a single one.
	Cluster *Cluster
	// NoSync skips fsync. Only for tests: a power failure loses data.
	NoSync bool
}

// Start starts an embedded member, single or one of several, and returns when it can serve. A
// directory that is not etcd's, or is in use by another process, is an error.
func Start(ctx context.Context, config Config) (*Store, error) {
	if config.Tick == 0 {
		config.Tick = time.Second
	}
	if config.Quota == 0 {
		config.Quota = 8 << 30
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
	c.QuotaBackendBytes = config.Quota
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
	// The token makes the member's ID, which must differ from that of others in this process.
	sum := sha256.Sum256([]byte(config.Dir))
	c.InitialClusterToken = hex.EncodeToString(sum[:8])
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
	log, closing := zap.NewNop(), &atomic.Bool{}
	if config.Log != nil {
		log = zap.New(core{log: config.Log, closing: closing})
	}
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(log)

	if config.Cluster != nil {
		if err := config.Cluster.apply(c); err != nil {
			return nil, err
		}
	}
	calm()
	server, err := embed.StartEtcd(c)
	if err != nil {
		return nil, fmt.Errorf("start etcd in %s: %w", config.Dir, err)
	}
	start := lead
	if config.Cluster != nil {
		start = awaitQuorum
	}
	if err := start(ctx, server); err != nil {
		server.Close()
		return nil, fmt.Errorf("etcd in %s: %w", config.Dir, err)
	}
	client := v3client.New(server.Server)
	out := &Store{
		client:   client,
		member:   uint64(server.Server.MemberID()),
		revision: server.Server.KV().Rev,
		space:    &space{server: server, quota: config.Quota, log: cmp.Or(config.Log, slog.New(slog.DiscardHandler))},
		close: func() error {
			closing.Store(true)
			err := client.Close()
			server.Close()
			if errors.Is(err, context.Canceled) {
				return nil
			}
			return err
		},
	}
	if config.Cluster == nil {
		return out, nil
	}
	// Others write too: only the quorum knows the current revision.
	out.revision = nil
	if err := out.settlePeer(ctx, config.Cluster.Peer); err != nil {
		return nil, errors.Join(err, out.Close())
	}
	return out, nil
}

// awaitQuorum returns when a member of several can serve.
func awaitQuorum(ctx context.Context, server *embed.Etcd) error {
	select {
	case <-server.Server.ReadyNotify():
		return nil
	case err := <-server.Err():
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// lead makes a single member the leader at once. Left alone it would wait for an
// election timeout first: seconds, with ticks as long as ours. The message is
// the one with which a leader hands over (Raft dissertation §3.10). It must not
// come before the member has applied what it had committed, which only Raft
// itself knows: etcd publishes its status as the variable raft.status. When
// that is another member's, in a process with several, the timeout decides.
func lead(ctx context.Context, server *embed.Etcd) error {
	again := time.NewTicker(2 * time.Millisecond)
	defer again.Stop()
	id := uint64(server.Server.MemberID())
	for {
		if caughtUp(id) {
			// An error means that the server is ending, which Err tells.
			_ = server.Server.Process(ctx, &raftpb.Message{Type: raftpb.MsgTimeoutNow.Enum(), To: &id})
		}
		select {
		case <-server.Server.ReadyNotify():
			return nil
		case err := <-server.Err():
			return err
		case <-ctx.Done():
			return ctx.Err()
		case <-again.C:
		}
	}
}

// caughtUp reports whether the member is a follower that has applied everything.
func caughtUp(id uint64) bool {
	published, ok := expvar.Get("raft.status").(expvar.Func)
	if !ok {
		return false
	}
	status, ok := published.Value().(raft.Status)
	return ok && status.ID == id && status.RaftState == raft.StateFollower &&
		status.GetCommit() > 0 && status.Applied == status.GetCommit()
}
