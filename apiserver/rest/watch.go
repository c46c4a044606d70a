package rest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/periplus/periplus/apiserver/cacher"
	"github.com/periplus/periplus/apiserver/measure"
	"github.com/periplus/periplus/apiserver/request"
)

const (
	// bookmarkEvery is how long after a change elsewhere a watcher that asked for
	// bookmarks learns of the newer revision.
	bookmarkEvery = time.Minute
	// watchBatch is how many events are encoded before the connection is flushed.
	watchBatch = 64
	// stuckAfter is how long a client may take to read what it was sent. One that takes
	// longer loses the connection, and the server what it kept for it.
	stuckAfter = 30 * time.Second
	// A watch without a timeout ends after 30 to 60 minutes, as upstream's.
	minWatch = 30 * time.Minute
)

// A watcher writes one watch stream.
type watcher struct {
	e       *endpoint
	c       *call
	q       *query
	w       http.ResponseWriter
	r       *http.Request
	flush   func()
	frame   frame
	headed  bool  // a table's columns have been sent
	after   int64 // changes up to this revision are not wanted
	written int64
	buf     *bytes.Buffer // frames that have not been sent; nil: there are none
	stuck   *time.Timer   // runs while the client is being written to; nil before the first time
	sent    *measure.Stream
}

// watch serves a watch: what is there now if the client asks for it, then
// every change.
func (e *endpoint) watch(w http.ResponseWriter, r *http.Request, c *call) error {
	q, err := e.listQuery(r, c)
	if err != nil {
		return err
	}
	var ok bool
	if c.format, ok = negotiateWatch(r.Header.Get("Accept"), e.offers()); !ok {
		return notAcceptable()
	}
	initial := q.SendInitialEvents != nil && *q.SendInitialEvents
	least := cmp.Or(e.server.config.MinWatch, minWatch)
	timeout := least + rand.N(least)
	if q.TimeoutSeconds != nil && *q.TimeoutSeconds > 0 {
		timeout = time.Duration(*q.TimeoutSeconds) * time.Second
	}
	ctx, cancel := context.WithTimeout(r.Context(), timeout)
	defer cancel()

	wr := &watcher{e: e, c: c, q: q, w: w, r: r, frame: frameJSON, sent: request.Metrics(r.Context()).Stream(e.gvr.Group, e.gvr.Version, e.gvr.Resource)}
	switch c.format.media {
	case mediaProtobuf:
		wr.frame = frameProtobuf
	case mediaCBOR:
		wr.frame = frameCBOR
	}
	var source *cacher.Watch
	switch {
	case initial, q.ResourceVersion == "", q.ResourceVersion == "0":
		version := q.ResourceVersion
		if q.SendInitialEvents != nil && !initial { // only what changes from now on
			version = ""
		}
		if err := e.fresh(ctx, version); err != nil {
			return err
		}
		rev := e.objects.set.Rev()
		snapshot, live := e.objects.Cache.SnapshotAndWatch()
		source = live
		wr.begin()
		if q.SendInitialEvents == nil || initial {
			if !wr.initial(snapshot) {
				return nil
			}
		}
		request.Settled(r.Context())
		if initial {
			wr.measureBegin()
		}
		if initial && q.AllowWatchBookmarks && !wr.bookmark(max(rev, snapshot.Rev), true) {
			return nil
		}
	default:
		rev, err := parseRevision(q.ResourceVersion)
		if err != nil {
			return err
		}
		if source, err = e.objects.Cache.Watch(rev); err != nil {
			return resourceExpired("too old resource version: " + q.ResourceVersion + " (" + strconv.FormatInt(e.objects.set.Rev(), 10) + ")")
		}
		wr.begin()
		request.Settled(r.Context())
		wr.after, wr.written = rev, rev
	}
	wr.run(ctx, source)
	return nil
}

// negotiateWatch is negotiate for streams: media types may carry stream=watch.
func negotiateWatch(accept string, o offers) (format, bool) {
	f, ok := negotiate(accept, o)
	if ok && f.media == mediaYAML {
		f.media = mediaJSON
	}
	return f, ok
}

// begin sends the header, so that the client knows that it is watching.
func (wr *watcher) begin() {
	h := wr.w.Header()
	switch wr.c.format.media {
	case mediaProtobuf:
		h.Set("Content-Type", mediaProtobuf+";stream=watch")
	case mediaCBOR:
		h.Set("Content-Type", mediaCBORStream)
	default:
		h.Set("Content-Type", mediaJSON)
	}
	h.Set("Cache-Control", "no-cache, private")
	addWarnings(wr.w, wr.r)
	wr.w.WriteHeader(http.StatusOK)
	wr.flush = func() {}
	if f, ok := wr.w.(http.Flusher); ok {
		wr.flush = f.Flush
	}
	wr.flush()
}

// initial writes what is there now as ADDED events.
func (wr *watcher) initial(s cacher.Snapshot) bool {
	prefix, start := wr.e.prefix(wr.q)
	ok := true
	batch := make([]*cacher.Object, 0, watchBatch)
	write := func() bool {
		ok = wr.e.prepare(batch) == nil
		for _, o := range batch {
			ok = ok && wr.object(watch.Added, o)
		}
		batch = batch[:0]
		ok = ok && wr.send()
		return ok
	}
	s.Each(prefix, start, func(o *cacher.Object) bool {
		if !wr.q.matches(wr.e, o) {
			return true
		}
		batch = append(batch, o)
		return len(batch) < watchBatch || write()
	})
	if ok {
		write()
	}
	wr.written = s.Rev
	return ok
}

// run writes changes until the client goes, the time is up or the watch fell behind.
func (wr *watcher) run(ctx context.Context, source *cacher.Watch) {
	var bookmark <-chan time.Time
	advanced := (<-chan struct{})(nil)
	events := make([]cacher.Event, 0, watchBatch)
	gone, ending := wr.e.gone, false
	for {
		rev, moved := wr.e.objects.set.Advanced()
		batch, wait, err := source.Poll(events[:0])
		if err != nil {
			if !errors.Is(err, cacher.ErrGone) {
				wr.expired()
			}
			return
		}
		if !wr.prepare(batch) {
			return
		}
		for i := range batch {
			if !wr.event(&batch[i]) {
				return
			}
		}
		if len(batch) > 0 {
			if !wr.send() || ctx.Err() != nil || wr.stopping() {
				return
			}
			continue
		}
		if ending {
			return
		}
		if wr.q.AllowWatchBookmarks && bookmark == nil {
			if rev > wr.written {
				bookmark, advanced = time.After(bookmarkEvery), nil
			} else {
				advanced = moved
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-wr.e.server.config.Stop:
			return
		case <-wait:
		case <-gone: // what has happened so far is still told
			gone, ending = nil, true
		case <-advanced:
			advanced = nil
		case <-bookmark:
			bookmark = nil
			if rev > wr.written && !wr.bookmark(rev, false) {
				return
			}
		}
	}
}

// prepare converts the objects of many changes at once, where somebody else does that.
func (wr *watcher) prepare(events []cacher.Event) bool {
	if wr.e.also == nil || wr.e.also.Prepare == nil {
		return true
	}
	var objects []*cacher.Object
	for i := range events {
		if e := &events[i]; e.Object.Rev > wr.after && wr.q.inScope(wr.e, e.Object) && !e.Deleted {
			objects = append(objects, e.Object)
		}
	}
	return len(objects) == 0 || wr.e.prepare(objects) == nil
}

// stopping reports whether the server is about to end.
func (wr *watcher) stopping() bool {
	select {
	case <-wr.e.server.config.Stop:
		return true
	default:
		return false
	}
}

// event writes a change as this watch sees it: an object that begins to match
// is ADDED, one that stops to is DELETED.
func (wr *watcher) event(e *cacher.Event) bool {
	if e.Object.Rev <= wr.after { // the watch begins in the future
		return true
	}
	now := !e.Deleted && wr.q.inScope(wr.e, e.Object)
	before := e.Prev != nil && wr.q.inScope(wr.e, e.Prev)
	switch {
	case now && before:
		return wr.object(watch.Modified, e.Object)
	case now:
		return wr.object(watch.Added, e.Object)
	case before && e.Deleted:
		return wr.object(watch.Deleted, e.Object)
	case before:
		// The last state that matched, under the revision of the change.
		return wr.object(watch.Deleted, e.Left())
	}
	return true
}

func (q *query) inScope(e *endpoint, o *cacher.Object) bool { return q.matches(e, o) }

func (wr *watcher) object(t watch.EventType, o *cacher.Object) bool {
	wr.written = max(wr.written, o.Rev)
	if wr.c.format.as == "" && wr.c.format.media == mediaProtobuf {
		if m, ok := wr.e.message(o); ok {
			frameMessage(wr.out(), t, &m)
			wr.sent.Sent(m.size())
			return true
		}
	}
	body, err := wr.encode(o)
	if err != nil {
		return false
	}
	wr.frame(wr.out(), t, body)
	wr.sent.Sent(len(body))
	return true
}

func (wr *watcher) encode(o *cacher.Object) ([]byte, error) {
	c := wr.c
	switch c.format.as {
	case "":
		return wr.e.encodeItem(c.format.media, o, true)
	case "Table":
		table, err := wr.e.table(c, &page{items: []*cacher.Object{o}, rev: o.Rev}, !wr.headed)
		if err != nil {
			return nil, err
		}
		wr.headed = true
		if c.format.media == mediaCBOR {
			return wr.e.server.codecs.EncodeCBOR(table)
		}
		return json.Marshal(table)
	default:
		return wr.metadata(o)
	}
}

// metadata returns the metadata of an object alone: for all who watch it in the version
// and the forms of today it is encoded once.
func (wr *watcher) metadata(o *cacher.Object) ([]byte, error) {
	f := wr.c.format
	encode := func(runtime.Object) ([]byte, error) { return wr.e.server.codecs.encode(f, partial(f, o)) }
	switch {
	case f.asGV == metav1.SchemeGroupVersion && f.media == mediaJSON:
		return o.Encoded(cacher.MetadataJSON, true, encode)
	case f.asGV == metav1.SchemeGroupVersion && f.media == mediaProtobuf:
		return o.Encoded(cacher.MetadataProtobuf, true, encode)
	}
	return encode(nil)
}

// bookmark tells the client that it has seen everything up to rev.
func (wr *watcher) bookmark(rev int64, initialEnd bool) bool {
	obj := wr.e.new()
	obj.GetObjectKind().SetGroupVersionKind(wr.e.gvk)
	meta := metaOf(obj)
	meta.ResourceVersion = strconv.FormatInt(rev, 10)
	if initialEnd {
		meta.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	}
	o := &cacher.Object{Obj: obj, Meta: meta}
	if wr.c.format.as == "Table" {
		t := &metav1.Table{TypeMeta: metav1.TypeMeta{APIVersion: wr.c.format.asGV.String(), Kind: "Table"}}
		t.ResourceVersion = meta.ResourceVersion
		raw, err := json.Marshal(partial(wr.c.format, o))
		if err != nil {
			return false
		}
		t.Rows = []metav1.TableRow{{Object: runtime.RawExtension{Raw: raw}, Cells: []any{}}}
		return wr.plain(watch.Bookmark, t) && wr.send()
	}
	ok := wr.object(watch.Bookmark, o) && wr.send()
	wr.written = rev
	return ok
}

// expired tells the client to list again.
func (wr *watcher) expired() {
	wr.plain(watch.Error, statusOf(resourceExpired("The resourceVersion for the provided watch is too old.")))
	wr.send()
}

func (wr *watcher) plain(t watch.EventType, obj runtime.Object) bool {
	body, err := wr.e.server.codecs.encode(wr.c.format, obj)
	if err != nil {
		return false
	}
	wr.frame(wr.out(), t, body)
	return true
}

// out is what the next frames go to.
func (wr *watcher) out() *bytes.Buffer {
	if wr.buf == nil {
		wr.buf = frames.Get().(*bytes.Buffer)
	}
	return wr.buf
}

// frames are the buffers of watches that have something to send just now.
var frames = sync.Pool{New: func() any { return &bytes.Buffer{} }}

func (wr *watcher) send() bool {
	if wr.buf == nil {
		return true
	}
	if wr.stuck == nil {
		c := http.NewResponseController(wr.w)
		// What has no connection of its own cannot be stuck: it buffers.
		wr.stuck = time.AfterFunc(stuckAfter, func() {
			_ = c.SetWriteDeadline(time.Unix(1, 0))
			request.Metrics(wr.r.Context()).CutOff(wr.e.gvr.Group, wr.e.gvr.Resource)
		})
	} else {
		wr.stuck.Reset(stuckAfter)
	}
	defer wr.stuck.Stop()
	_, err := wr.w.Write(wr.buf.Bytes())
	if wr.buf.Cap() <= 1<<20 {
		wr.buf.Reset()
		frames.Put(wr.buf)
	}
	wr.buf = nil
	wr.flush()
	return err == nil
}

// A frame appends one event of a stream.
type frame func(out *bytes.Buffer, t watch.EventType, object []byte)

// frameJSON writes {"type":…,"object":…} and a line end.
func frameJSON(out *bytes.Buffer, t watch.EventType, object []byte) {
	out.WriteString(`{"type":"`)
	out.WriteString(string(t))
	out.WriteString(`","object":`)
	out.Write(object)
	out.WriteString("}\n")
}

// frameProtobuf writes the length (4 bytes, big endian) and a WatchEvent:
// type (field 1), object (field 2) as RawExtension { raw (field 1) }.
func frameProtobuf(out *bytes.Buffer, t watch.EventType, object []byte) {
	out.Write(frameHead(make([]byte, 0, 40), t, len(object)))
	out.Write(object)
}

// frameMessage is frameProtobuf of an object as it is stored.
func frameMessage(out *bytes.Buffer, t watch.EventType, m *storedMessage) {
	n := m.size()
	out.Grow(n + 40)
	out.Write(m.append(frameHead(out.AvailableBuffer(), t, n)))
}

// frameHead appends what is before an object of n bytes.
func frameHead(head []byte, t watch.EventType, n int) []byte {
	inner := 1 + uvarintLen(n) + n
	size := 1 + uvarintLen(len(t)) + len(t) + 1 + uvarintLen(inner) + inner
	head = binary.BigEndian.AppendUint32(head, uint32(size))
	head = append(head, 1<<3|2)
	head = appendUvarint(head, len(t))
	head = append(head, t...)
	head = append(head, 2<<3|2)
	head = appendUvarint(head, inner)
	head = append(head, 1<<3|2)
	return appendUvarint(head, n)
}
