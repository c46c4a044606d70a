package encryption

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/server/options/encryptionconfig"
	"k8s.io/apiserver/pkg/storage/value"

	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/store"
)

// Config says what is encrypted, and how.
type Config struct {
	// File is the path of an EncryptionConfiguration.
	File string
	// Reload lets the file be read again when it changes (see Store.Reload).
	Reload bool
	// Resource tells whose objects are stored under a key.
	Resource func(key string) schema.GroupResource
	// Again is called with the keys of entries that could not be read and perhaps can be
	// now; may be nil.
	Again func(keys []string)
	// Server names this API server in metrics.
	Server string
	Log    *slog.Logger
}

// Store encrypts what another store keeps. Make it with New, and End it.
type Store struct {
	store.Store
	config       Config
	transformers *encryptionconfig.DynamicTransformers
	end          context.CancelFunc
	rules        atomic.Pointer[rules]

	mu         sync.Mutex // guards what follows
	unreadable map[string]error
	tried      time.Time // when reading one of them was last tried
}

var _ store.Store = (*Store)(nil)

// rules is a configuration that is in force.
type rules struct {
	hash      string
	resources map[schema.GroupResource]value.Transformer
}

// covers reports whether objects of a resource are encrypted.
func (r *rules) covers(gr schema.GroupResource) bool {
	for _, key := range []schema.GroupResource{gr, {Group: gr.Group, Resource: "*"}, {Group: "*", Resource: "*"}} {
		if _, ok := r.resources[key]; ok {
			return true
		}
	}
	return false
}

// New reads the configuration.
func New(inner store.Store, c Config) (*Store, error) {
	ctx, end := context.WithCancel(context.Background()) // ended by End, or by Reload
	loaded, err := encryptionconfig.LoadEncryptionConfig(ctx, c.File, c.Reload, c.Server)
	if err != nil {
		end()
		return nil, fmt.Errorf("encryption-provider-config: %w", err)
	}
	s := &Store{Store: inner, config: c, end: end, unreadable: map[string]error{}}
	s.transformers = encryptionconfig.NewDynamicTransformers(loaded.Transformers, health(loaded), end, loaded.KMSCloseGracePeriod)
	s.rules.Store(&rules{loaded.EncryptionFileContentHash, loaded.Transformers})
	return s, nil
}

// End ends what goes on in the background. The inner store stays open.
func (s *Store) End() { s.end() }

// Reload reads the configuration again, if it has changed. One that is not valid, or of
// which a key service does not answer, is not used.
func (s *Store) Reload() error {
	hash, err := encryptionconfig.GetEncryptionConfigHash(s.config.File)
	if err != nil {
		return err
	}
	if hash == s.rules.Load().hash {
		return nil
	}
	ctx, end := context.WithCancel(context.Background()) // ended by End, or by the next Reload
	loaded, err := encryptionconfig.LoadEncryptionConfig(ctx, s.config.File, true, s.config.Server)
	if err != nil {
		end()
		return err
	}
	check := health(loaded)
	probe, _ := http.NewRequestWithContext(ctx, http.MethodGet, "/healthz/kms-providers", nil) // always valid
	if err := check.Check(probe); err != nil {
		end()
		return fmt.Errorf("a key service of the new configuration is not well: %w", err)
	}
	s.transformers.Set(loaded.Transformers, end, check, loaded.KMSCloseGracePeriod)
	s.end = end
	s.rules.Store(&rules{loaded.EncryptionFileContentHash, loaded.Transformers})
	s.readAgain()
	s.config.Log.Info("encryption configuration is in force", base.KeyPath, s.config.File, "resources", len(loaded.Transformers))
	return nil
}

// Check reports whether the key services answer: the check kms-providers.
func (s *Store) Check(ctx context.Context) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "/healthz/kms-providers", nil)
	if err != nil {
		return err
	}
	return s.transformers.Check(r)
}

// encrypted begins every value that was encrypted.
var encrypted = []byte("k8s:enc:")

// seal returns a value as it is to be stored.
func (s *Store) seal(ctx context.Context, key string, plain []byte) ([]byte, error) {
	gr := s.config.Resource(key)
	if !s.rules.Load().covers(gr) {
		return plain, nil
	}
	out, err := s.transformers.TransformerForResource(gr).TransformToStorage(ctx, plain, value.DefaultContext(key))
	if err != nil {
		return nil, fmt.Errorf("encrypt %s: %w", key, err)
	}
	return out, nil
}

// open replaces an entry's value by what was encrypted. stale says that it would be
// written otherwise now.
func (s *Store) open(ctx context.Context, e *store.Entry) (stale bool, err error) {
	gr := s.config.Resource(e.Key)
	if !bytes.HasPrefix(e.Value, encrypted) && !s.rules.Load().covers(gr) {
		return false, nil
	}
	plain, stale, err := s.transformers.TransformerForResource(gr).TransformFromStorage(ctx, e.Value, value.DefaultContext(e.Key))
	if err != nil {
		return false, fmt.Errorf("unable to transform key %q: %w", e.Key, err)
	}
	e.Value = plain
	return stale, nil
}

// note remembers whether an entry could be read.
func (s *Store) note(key string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		if len(s.unreadable) > 0 {
			delete(s.unreadable, key)
		}
		return
	}
	s.unreadable[key] = err
}

// Unreadable returns why an entry below a prefix cannot be read, nil if all can.
func (s *Store) Unreadable(prefix string) error {
	key, err := s.oneUnreadable(prefix)
	if err != nil && s.again(key) {
		_, err = s.oneUnreadable(prefix)
	}
	return err
}

// oneUnreadable returns an entry below a prefix that cannot be read, and why.
func (s *Store) oneUnreadable(prefix string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, err := range s.unreadable {
		if strings.HasPrefix(key, prefix) {
			return key, err
		}
	}
	return "", nil
}

// Stale reports whether what is stored under a key would be written otherwise now.
func (s *Store) Stale(ctx context.Context, key string) bool {
	if !s.rules.Load().covers(s.config.Resource(key)) {
		return false
	}
	e, err := s.Store.Get(ctx, key)
	if err != nil {
		return false
	}
	stale, err := s.open(ctx, &e)
	return stale && err == nil
}

// Get implements store.Store.
func (s *Store) Get(ctx context.Context, key string) (store.Entry, error) {
	e, err := s.Store.Get(ctx, key)
	if err != nil {
		return e, err
	}
	_, err = s.open(ctx, &e)
	return e, err
}

// List implements store.Store. Entries that cannot be read come as they are stored; see Unreadable.
func (s *Store) List(ctx context.Context, prefix string, o store.ListOptions) (store.ListResult, error) {
	out, err := s.Store.List(ctx, prefix, o)
	if err != nil {
		return out, err
	}
	for i := range out.Entries {
		_, err := s.open(ctx, &out.Entries[i])
		s.note(out.Entries[i].Key, err)
	}
	return out, nil
}

// Create implements store.Store.
func (s *Store) Create(ctx context.Context, key string, plain []byte) (int64, error) {
	sealed, err := s.seal(ctx, key, plain)
	if err != nil {
		return 0, err
	}
	return s.Store.Create(ctx, key, sealed)
}

// Update implements store.Store.
func (s *Store) Update(ctx context.Context, key string, plain []byte, mod int64) (int64, error) {
	sealed, err := s.seal(ctx, key, plain)
	if err != nil {
		return 0, err
	}
	rev, err := s.Store.Update(ctx, key, sealed, mod)
	return rev, s.openConflict(ctx, err)
}

// Delete implements store.Store.
func (s *Store) Delete(ctx context.Context, key string, mod int64) (int64, error) {
	rev, err := s.Store.Delete(ctx, key, mod)
	return rev, s.openConflict(ctx, err)
}

// Commit implements store.Store.
func (s *Store) Commit(ctx context.Context, ops ...store.Op) (int64, error) {
	sealed := make([]store.Op, len(ops))
	for i, op := range ops {
		if op.Value != nil {
			var err error
			if op.Value, err = s.seal(ctx, op.Key, op.Value); err != nil {
				return 0, err
			}
		}
		sealed[i] = op
	}
	rev, err := s.Store.Commit(ctx, sealed...)
	return rev, s.openConflict(ctx, err)
}

// openConflict lets the entry in a conflict be read.
func (s *Store) openConflict(ctx context.Context, err error) error {
	var conflict *store.ConflictError
	if errors.As(err, &conflict) && conflict.Current.Mod != 0 {
		_, _ = s.open(ctx, &conflict.Current) // as it is stored, if it cannot be read
	}
	return err
}

// Watch implements store.Store. Entries that cannot be read come as they are stored; see Unreadable.
func (s *Store) Watch(ctx context.Context, prefix string, after int64, handle func(events []store.Event, revision int64)) error {
	return s.Store.Watch(ctx, prefix, after, func(events []store.Event, revision int64) {
		for i := range events {
			var err error
			if !events[i].Deleted {
				_, err = s.open(ctx, &events[i].Entry)
			}
			s.note(events[i].Key, err)
		}
		handle(events, revision)
	})
}
