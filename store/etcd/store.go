package etcd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/periplus/periplus/store"
)

// answerWithin is how long etcd may take to say which revision is current.
const answerWithin = 10 * time.Second

// Store is a store.Store over an etcd client.
type Store struct {
	client   *clientv3.Client
	member   uint64       // number of the embedded member; 0 for an external etcd
	revision func() int64 // current revision of a single embedded member; nil otherwise
	space    *space       // of the embedded member; nil for an external etcd
	close    func() error
}

var _ store.Store = (*Store)(nil)

// Dial returns a store on an external etcd cluster.
func Dial(config clientv3.Config) (*Store, error) {
	c, err := clientv3.New(config)
	if err != nil {
		return nil, fmt.Errorf("connect to etcd at %v: %w", config.Endpoints, err)
	}
	return &Store{client: c, close: c.Close}, nil
}

// Get returns the entry of key.
func (s *Store) Get(ctx context.Context, key string) (store.Entry, error) {
	r, err := s.client.Get(ctx, key)
	if err != nil {
		return store.Entry{}, fmt.Errorf("get %s: %w", key, translate(err))
	}
	if len(r.Kvs) == 0 {
		return store.Entry{}, store.ErrNotFound
	}
	return entry(r.Kvs[0]), nil
}

// List returns the entries below prefix, in key order.
func (s *Store) List(ctx context.Context, prefix string, o store.ListOptions) (store.ListResult, error) {
	start := max(o.Start, prefix)
	opts := []clientv3.OpOption{clientv3.WithRange(clientv3.GetPrefixRangeEnd(prefix)), clientv3.WithLimit(o.Limit)}
	if prefix == "" {
		opts[0] = clientv3.WithFromKey()
		if start == "" {
			start = "\x00"
		}
	}
	if o.Revision > 0 {
		opts = append(opts, clientv3.WithRev(o.Revision))
	}
	r, err := s.client.Get(ctx, start, opts...)
	if err != nil {
		return store.ListResult{}, fmt.Errorf("list %s: %w", prefix, translate(err))
	}
	out := store.ListResult{Revision: r.Header.Revision, Entries: make([]store.Entry, len(r.Kvs)), Remaining: r.Count - int64(len(r.Kvs))}
	if o.Revision > 0 {
		out.Revision = o.Revision
	}
	for i, kv := range r.Kvs {
		out.Entries[i] = entry(kv)
	}
	return out, nil
}

// Create stores a new key.
func (s *Store) Create(ctx context.Context, key string, value []byte) (int64, error) {
	rev, err := s.Commit(ctx, store.Op{Key: key, Value: filled(value)})
	var conflict *store.ConflictError
	if errors.As(err, &conflict) {
		return 0, store.ErrExists
	}
	return rev, err
}

// Update replaces a value if the key is still at revision mod.
func (s *Store) Update(ctx context.Context, key string, value []byte, mod int64) (int64, error) {
	return s.Commit(ctx, store.Op{Key: key, Value: filled(value), Mod: mod})
}

// Delete removes a key if it is still at revision mod.
func (s *Store) Delete(ctx context.Context, key string, mod int64) (int64, error) {
	return s.Commit(ctx, store.Op{Key: key, Mod: mod})
}

// filled keeps an empty value from looking like none.
func filled(value []byte) []byte {
	if value == nil {
		return []byte{}
	}
	return value
}

// Commit does all ops or none.
func (s *Store) Commit(ctx context.Context, ops ...store.Op) (int64, error) {
	// One transaction asks for the revisions, writes, and reads what is in the way.
	unchanged := make([]clientv3.Cmp, 0, len(ops))
	write, read := make([]clientv3.Op, len(ops)), make([]clientv3.Op, len(ops))
	for i, op := range ops {
		if op.Mod != store.Any {
			unchanged = append(unchanged, clientv3.Compare(clientv3.ModRevision(op.Key), "=", op.Mod))
		}
		if write[i] = clientv3.OpDelete(op.Key); op.Value != nil {
			write[i] = clientv3.OpPut(op.Key, string(op.Value))
		}
		read[i] = clientv3.OpGet(op.Key)
	}
	r, err := s.client.Txn(ctx).If(unchanged...).Then(write...).Else(read...).Commit()
	again := s.space != nil && errors.Is(err, rpctypes.ErrNoSpace)
	if again {
		if err := s.space.reclaim(ctx); err != nil {
			return 0, fmt.Errorf("write %s: %w", ops[0].Key, err)
		}
		r, err = s.client.Txn(ctx).If(unchanged...).Then(write...).Else(read...).Commit()
	}
	if err != nil {
		return 0, fmt.Errorf("write %s: %w", ops[0].Key, translate(err))
	}
	if r.Succeeded {
		return r.Header.Revision, nil
	}
	var first *store.ConflictError
	done, rev := again, int64(0)
	for i, op := range ops {
		current := store.Entry{Key: op.Key}
		if kvs := r.Responses[i].GetResponseRange().Kvs; len(kvs) > 0 {
			current = entry(kvs[0])
		}
		if first == nil && op.Mod != store.Any && current.Mod != op.Mod {
			first = &store.ConflictError{Current: current}
		}
		done = done && op.Value != nil && bytes.Equal(current.Value, op.Value)
		rev = max(rev, current.Mod)
	}
	if done {
		return rev, nil // the write that crosses the quota is refused and done nevertheless
	}
	return 0, first
}

// Watch delivers the changes below prefix after revision after.
func (s *Store) Watch(ctx context.Context, prefix string, after int64, handle func([]store.Event, int64)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	key, scope := prefix, clientv3.WithPrefix()
	if prefix == "" {
		key, scope = "\x00", clientv3.WithFromKey()
	}
	responses := s.client.Watch(clientv3.WithRequireLeader(ctx), key, scope, clientv3.WithRev(after+1), clientv3.WithProgressNotify(), clientv3.WithCreatedNotify())
	var events []store.Event
	for r := range responses {
		if err := r.Err(); err != nil {
			return fmt.Errorf("watch %s: %w", prefix, translate(err))
		}
		events = events[:0]
		for i, e := range r.Events {
			ev := store.Event{Entry: entry(e.Kv)}
			if e.Type == mvccpb.Event_DELETE {
				ev.Deleted, ev.Value = true, nil
			}
			events = append(events, ev)
			if i+1 == len(r.Events) || r.Events[i+1].Kv.ModRevision != ev.Mod {
				handle(events, ev.Mod)
				events = events[:0]
			}
		}
		if r.Created {
			handle(nil, after) // from now on no change is missed
			continue
		}
		handle(nil, r.Header.Revision)
	}
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("watch %s: the connection to etcd ended", prefix)
}

// Revision returns the current revision.
func (s *Store) Revision(ctx context.Context) (int64, error) {
	if s.revision != nil {
		return s.revision(), nil
	}
	limited, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	r, err := s.client.Get(limited, "/registry/health", clientv3.WithCountOnly())
	if err != nil {
		if ctx.Err() == nil && limited.Err() != nil {
			err = fmt.Errorf("%w: no answer within %s", store.ErrUnavailable, answerWithin)
		}
		return 0, fmt.Errorf("read the current revision: %w", translate(err))
	}
	return r.Header.Revision, nil
}

// Compact forgets history before revision.
func (s *Store) Compact(ctx context.Context, revision int64) error {
	_, err := s.client.Compact(ctx, revision)
	return translate(err)
}

// Close ends the client and, embedded, the server.
func (s *Store) Close() error { return s.close() }

func entry(kv *mvccpb.KeyValue) store.Entry {
	return store.Entry{Key: string(kv.Key), Value: kv.Value, Create: kv.CreateRevision, Mod: kv.ModRevision}
}
