package ownership

import (
	"bytes"
	"cmp"
	"errors"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	update   = metav1.ManagedFieldsOperationUpdate
	apply    = metav1.ManagedFieldsOperationApply
	fieldsV1 = "FieldsV1"
)

// ErrNoVersion is returned by a Write's Compare for a version that is not served (any
// more): its entries are dropped.
var ErrNoVersion = errors.New("the version is not served")

// A Write is a create, update or patch of an object, not an apply.
type Write struct {
	Manager     string // who writes; "" is unknown
	APIVersion  string // in which version
	Subresource string
	Create      bool
	// Live are the entries of the object that is stored, Sent those that the client
	// sent; they count on the main resource, so that a client can mend entries.
	Live, Sent []metav1.ManagedFieldsEntry
	// Compare writes to into what the write changes, in terms of a version.
	Compare func(apiVersion string, into *Change) error
}

var changes = sync.Pool{New: func() any { return new(Change) }}

// Owners returns the entries of the object that is about to be stored. An object that
// has none, because it was made by an older server, gets none: it is tracked from its
// first apply on. With an error the entries stay those of the live object.
func (w *Write) Owners() ([]metav1.ManagedFieldsEntry, error) {
	start := w.start()
	if len(start) == 0 && !w.Create {
		return nil, nil
	}
	change := changes.Get().(*Change)
	defer changes.Put(change)
	if err := w.Compare(w.APIVersion, change); err != nil {
		return w.Live, err
	}
	out := make([]metav1.ManagedFieldsEntry, 0, len(start)+1)
	self := metav1.ManagedFieldsEntry{
		Manager: cmp.Or(w.Manager, "unknown"), Operation: update, APIVersion: w.APIVersion, FieldsType: fieldsV1, Subresource: w.Subresource,
	}
	added := len(change.Taken) == 0
	for i := range start {
		e := start[i]
		own := identical(&e, &self)
		var err error
		switch {
		case e.APIVersion != w.APIVersion:
			err = w.subtractOther(&e)
		case own && len(change.Taken) > 0:
			added = true
			err = extend(&e, change)
			e.Time = now()
		default:
			err = subtract(&e, change)
		}
		if err != nil {
			return w.Live, err
		}
		if e.FieldsV1 != nil {
			out = append(out, e)
		}
	}
	if !added {
		self.FieldsV1, self.Time = seen.get(change.Taken), now()
		out = append(out, self)
	}
	out, err := limit(out)
	if err != nil {
		return w.Live, err
	}
	arrange(out)
	if len(out) == 0 {
		return nil, nil
	}
	return out, nil
}

func now() *metav1.Time {
	t := metav1.NewTime(time.Now().UTC().Truncate(time.Second))
	return &t
}

// start returns the entries that the write begins with: those that the client sent if
// they are any good, else the live ones.
func (w *Write) start() []metav1.ManagedFieldsEntry {
	if w.Subresource == "" {
		if isReset(w.Sent) {
			return nil
		}
		if sent, ok := w.accept(w.Sent); ok && len(sent) > 0 {
			return sent
		}
	}
	if Valid(w.Live) != nil {
		return nil
	}
	return w.Live
}

// isReset tells the ways to say that nobody shall own anything.
func isReset(entries []metav1.ManagedFieldsEntry) bool {
	if len(entries) == 1 {
		e := &entries[0]
		return e.Manager == "" && e.Operation == "" && e.APIVersion == "" && e.Time == nil && e.FieldsType == "" && e.FieldsV1 == nil && e.Subresource == ""
	}
	return len(entries) == 0 && entries != nil
}

// accept returns entries of a client with their sets in canonical form. Most often they
// are the live ones, which it was sent before.
func (w *Write) accept(sent []metav1.ManagedFieldsEntry) ([]metav1.ManagedFieldsEntry, bool) {
	if len(sent) == 0 || Valid(sent) != nil {
		return nil, false
	}
	out := make([]metav1.ManagedFieldsEntry, 0, len(sent))
	for i := range sent {
		e := sent[i]
		raw := e.FieldsV1.GetRawBytes()
		if j := slices.IndexFunc(w.Live, func(l metav1.ManagedFieldsEntry) bool {
			return l.FieldsV1 != nil && bytes.Equal(l.FieldsV1.GetRawBytes(), raw)
		}); j >= 0 {
			e.FieldsV1 = w.Live[j].FieldsV1
		} else {
			if len(raw) == 0 {
				raw = emptySet
			}
			set, err := canonical(raw)
			if err != nil {
				return nil, false
			}
			e.FieldsV1 = seen.get(set)
		}
		if j := slices.IndexFunc(out, func(o metav1.ManagedFieldsEntry) bool { return identical(&o, &e) }); j >= 0 {
			out[j] = e
		} else {
			out = append(out, e)
		}
	}
	return out, true
}

// Valid returns an error unless all entries say what they must.
func Valid(entries []metav1.ManagedFieldsEntry) error {
	for i := range entries {
		switch e := &entries[i]; {
		case e.Operation != update && e.Operation != apply:
			return errors.New("operation must be `Apply` or `Update`")
		case e.APIVersion == "":
			return errors.New("apiVersion must not be empty")
		case e.FieldsType == "":
			return errors.New("missing fieldsType in managed fields entry")
		case e.FieldsType != fieldsV1:
			return errors.New("invalid fieldsType \"" + e.FieldsType + "\" in managed fields entry")
		}
	}
	return nil
}

// identical reports whether two entries are those of the same manager: an applier
// keeps its entry when it changes to another version.
func identical(a, b *metav1.ManagedFieldsEntry) bool {
	return a.Manager == b.Manager && a.Operation == b.Operation && a.Subresource == b.Subresource &&
		(a.APIVersion == b.APIVersion || a.Operation == apply)
}

// extend gives e what the change takes.
func extend(e *metav1.ManagedFieldsEntry, c *Change) error {
	return replace(e, func(out, raw []byte) ([]byte, error) {
		if len(c.Removed) == 0 {
			return combine(out, union, raw, c.Taken)
		}
		rest, err := combine(nil, minus, raw, c.Removed)
		if err != nil {
			return out, err
		}
		return combine(out, union, rest, c.Taken)
	})
}

// subtract takes from e what the change takes and removes.
func subtract(e *metav1.ManagedFieldsEntry, c *Change) error {
	for _, set := range [][]byte{c.Taken, c.Removed} {
		if len(set) == 0 || e.FieldsV1 == nil {
			continue
		}
		if err := replace(e, func(out, raw []byte) ([]byte, error) { return combine(out, minus, raw, set) }); err != nil {
			return err
		}
	}
	return nil
}

// subtractOther does the same for an entry in terms of another version. An entry of a version that is not
// served goes.
func (w *Write) subtractOther(e *metav1.ManagedFieldsEntry) error {
	change := changes.Get().(*Change)
	defer changes.Put(change)
	err := w.Compare(e.APIVersion, change)
	if errors.Is(err, ErrNoVersion) {
		e.FieldsV1 = nil
		return nil
	}
	if err != nil {
		return err
	}
	return subtract(e, change)
}

var buffers = sync.Pool{New: func() any { return new([]byte) }}

// replace changes the set of e, to nil if it becomes empty.
func replace(e *metav1.ManagedFieldsEntry, change func(out, raw []byte) ([]byte, error)) error {
	buffer := buffers.Get().(*[]byte)
	defer buffers.Put(buffer)
	raw := e.FieldsV1.GetRawBytes()
	out, err := change((*buffer)[:0], raw)
	*buffer = out[:0]
	switch {
	case err != nil:
		return err
	case len(out) == 0:
		e.FieldsV1 = nil
	case !bytes.Equal(out, raw):
		e.FieldsV1 = seen.get(out)
	}
	return nil
}

// arrange sorts entries as upstream does.
func arrange(entries []metav1.ManagedFieldsEntry) {
	slices.SortFunc(entries, func(a, b metav1.ManagedFieldsEntry) int {
		return cmp.Or(cmp.Compare(a.Operation, b.Operation), cmp.Compare(seconds(a.Time), seconds(b.Time)), cmp.Compare(a.Manager, b.Manager),
			cmp.Compare(a.APIVersion, b.APIVersion), cmp.Compare(a.Subresource, b.Subresource))
	})
}

func seconds(t *metav1.Time) int64 {
	if t == nil {
		return 0
	}
	return t.Unix()
}
