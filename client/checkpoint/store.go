package checkpoint

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"go.etcd.io/bbolt"
	bbolterrors "go.etcd.io/bbolt/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/periplus/periplus/base"
)

// gather is how long changes are gathered before they are written.
const gather = time.Second

// knownBucket tells which lists were ever complete.
const knownBucket = "known"

// An Object is what can be kept: a built-in kind.
type Object interface {
	runtime.Object
	metav1.Object
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
}

// A Store is a file with objects. Its layout: a bucket a list, a key "namespace/name",
// and as value the length of the resource version (uvarint), the version, and the
// object in protobuf without it.
type Store struct {
	log *slog.Logger
	db  *bbolt.DB

	mu      sync.Mutex // guards the rest
	pending map[string]map[string]any
	timer   *time.Timer
	closed  bool
	reached chan struct{} // closed, and replaced, when the API has answered

	// asking has an element while somebody asks the API again and again for all who wait.
	asking chan struct{}

	writing sync.Mutex // held while pending is written: writes keep their order
}

// Open opens the file at path, or makes it. One that is damaged is put aside: what it
// held is lost, and the node starts as one that has never been connected.
func Open(path string, log *slog.Logger) (*Store, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("checkpoints: %w", err)
	}
	db, err := open(path)
	if err != nil && !errors.Is(err, bbolterrors.ErrTimeout) && !errors.Is(err, os.ErrPermission) {
		log.Error("The checkpoints are damaged and cannot be used: what this node knew is read from the server again", base.KeyError, err)
		if err := os.Rename(path, path+".damaged"); err != nil {
			return nil, fmt.Errorf("checkpoints: %w", err)
		}
		db, err = open(path)
	}
	if err != nil {
		return nil, fmt.Errorf("checkpoints %s: %w", path, err)
	}
	return &Store{log: log, db: db, pending: map[string]map[string]any{}, reached: make(chan struct{}), asking: make(chan struct{}, 1)}, nil
}

// open also notices damage that bbolt panics about.
func open(path string) (db *bbolt.DB, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	db, err = bbolt.Open(path, 0o600, &bbolt.Options{Timeout: time.Second, NoFreelistSync: true})
	if err != nil {
		return nil, err
	}
	return db, db.View(func(tx *bbolt.Tx) error {
		for err := range tx.Check() {
			return err
		}
		return nil
	})
}

// Exists reports whether there is something at path to start from.
func Exists(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Size() > 0
}

// Close writes what is pending.
func (s *Store) Close() error {
	s.mu.Lock()
	s.closed = true
	if s.timer != nil {
		s.timer.Stop()
	}
	s.mu.Unlock()
	return errors.Join(s.Flush(), s.db.Close())
}

// put notes a value: an Object, bytes, or nil for a deletion.
func (s *Store) put(bucket, key string, value any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	b := s.pending[bucket]
	if b == nil {
		b = map[string]any{}
		s.pending[bucket] = b
	}
	b[key] = value
	if s.timer == nil {
		s.timer = time.AfterFunc(gather, func() {
			if err := s.Flush(); err != nil {
				s.log.Error("What this node knows cannot be written: after a restart without a server it would be older", base.KeyError, err)
			}
		})
	}
}

// Flush writes what is pending in one transaction.
func (s *Store) Flush() error {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	pending := s.pending
	s.pending = map[string]map[string]any{}
	s.timer = nil
	s.mu.Unlock()
	if len(pending) == 0 {
		return nil
	}
	changes := map[string]map[string][]byte{}
	err := s.db.View(func(tx *bbolt.Tx) error {
		for bucket, values := range pending {
			b := tx.Bucket([]byte(bucket))
			for key, value := range values {
				var have []byte
				if b != nil {
					have = b.Get([]byte(key))
				}
				want, err := encode(value)
				if err != nil {
					return fmt.Errorf("%s %s: %w", bucket, key, err)
				}
				if _, isObject := value.(Object); isObject && have != nil && bytes.Equal(body(have), body(want)) || bytes.Equal(have, want) {
					continue
				}
				if changes[bucket] == nil {
					changes[bucket] = map[string][]byte{}
				}
				changes[bucket][key] = want
			}
		}
		return nil
	})
	if err != nil || len(changes) == 0 {
		return err
	}
	return s.db.Update(func(tx *bbolt.Tx) error {
		for bucket, values := range changes {
			b, err := tx.CreateBucketIfNotExists([]byte(bucket))
			if err != nil {
				return err
			}
			for key, value := range values {
				if value == nil {
					err = b.Delete([]byte(key))
				} else {
					err = b.Put([]byte(key), value)
				}
				if err != nil {
					return err
				}
			}
		}
		return nil
	})
}

func encode(value any) ([]byte, error) {
	switch v := value.(type) {
	case nil:
		return nil, nil
	case []byte:
		return v, nil
	case Object:
		o := v.DeepCopyObject().(Object)
		o.SetManagedFields(nil)
		version := o.GetResourceVersion()
		o.SetResourceVersion("")
		trim(o)
		data, err := o.Marshal()
		if err != nil {
			return nil, err
		}
		return bytes.Join([][]byte{binary.AppendUvarint(nil, uint64(len(version))), []byte(version), data}, nil), nil
	}
	return nil, fmt.Errorf("%T cannot be kept", value)
}

// split takes the value of an object apart.
func split(value []byte) (version string, data []byte) {
	n, used := binary.Uvarint(value)
	if used <= 0 || uint64(len(value)-used) < n {
		return "", nil
	}
	return string(value[used : used+int(n)]), value[used+int(n):] //nolint:gosec // bounded by the line above
}

func body(value []byte) []byte {
	_, data := split(value)
	return data
}

// each calls f with the kept values of a bucket; they are valid during the call.
func (s *Store) each(bucket string, f func(key string, value []byte)) error {
	if err := s.Flush(); err != nil {
		return err
	}
	return s.db.View(func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte(bucket))
		if b == nil {
			return nil
		}
		return b.ForEach(func(k, v []byte) error {
			f(string(k), v)
			return nil
		})
	})
}

// get returns a kept value, nil if there is none.
func (s *Store) get(bucket, key string) []byte {
	s.writing.Lock() // what is being written is neither here nor there
	defer s.writing.Unlock()
	s.mu.Lock()
	value, pending := s.pending[bucket][key]
	s.mu.Unlock()
	if pending {
		data, err := encode(value)
		if err != nil {
			return nil
		}
		return data
	}
	var out []byte
	_ = s.db.View(func(tx *bbolt.Tx) error { // reading does not fail
		if b := tx.Bucket([]byte(bucket)); b != nil {
			out = bytes.Clone(b.Get([]byte(key)))
		}
		return nil
	})
	return out
}

// versions are the resource versions of what is kept of a list, by key.
func (s *Store) versions(l List) map[string]string {
	out := map[string]string{}
	if l.Only != "" {
		if v := s.get(l.Bucket, l.Only); v != nil {
			out[l.Only], _ = split(v)
		}
		return out
	}
	if err := s.each(l.Bucket, func(key string, value []byte) { out[key], _ = split(value) }); err != nil {
		s.log.Warn("Checkpoints cannot be read", base.KeyError, err)
	}
	return out
}

// keep drops what wanted does not accept.
func (s *Store) keep(bucket string, wanted func(key string) bool) {
	var drop []string
	if err := s.each(bucket, func(key string, _ []byte) {
		if !wanted(key) {
			drop = append(drop, key)
		}
	}); err != nil {
		s.log.Warn("Checkpoints cannot be cleaned", base.KeyError, err)
	}
	for _, key := range drop {
		s.put(bucket, key, nil)
	}
}

// answered wakes those who wait for the API.
func (s *Store) answered() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.reached)
	s.reached = make(chan struct{})
}

func (s *Store) waiting() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reached
}
