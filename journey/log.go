package journey

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"
)

const (
	// keep is how many spans a Log holds, and keepBytes how much memory about; the
	// oldest go first.
	keep      = 16384
	keepBytes = 8 << 20
	// maxPost bounds the body of spans sent by another process.
	maxPost = 1 << 20
	// maxClocks bounds for how many machines the clock is known.
	maxClocks = 8192
)

// A Log keeps the newest spans of a cluster in memory and serves them. It is
// the Recorder of components in the API server's process.
type Log struct {
	mu     sync.Mutex
	spans  []Span // a ring once it has been full: the oldest is at first
	first  int
	count  int
	bytes  int
	clocks map[string]*clock // of senders
}

var (
	_ Recorder     = (*Log)(nil)
	_ http.Handler = (*Log)(nil)
)

// NewLog returns an empty log.
func NewLog() *Log { return &Log{} }

// Path is where a Log is served: GET returns the spans of ?trace= or of ?request=,
// POST adds a Batch.
const Path = "/periplus/v1/spans"

// Record implements Recorder.
func (l *Log) Record(s Span) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.recordLocked(s)
}

func (l *Log) recordLocked(s Span) {
	l.bytes += s.size()
	if l.count == len(l.spans) && l.count < keep {
		// It grows by appending, which needs the oldest at the beginning.
		l.straightenLocked()
		l.spans = append(l.spans, s)
		l.spans = l.spans[:cap(l.spans)][:min(cap(l.spans), keep)]
		l.count++
	} else {
		if l.count == len(l.spans) {
			l.dropLocked()
		}
		l.spans[(l.first+l.count)%len(l.spans)] = s
		l.count++
	}
	for l.bytes > keepBytes {
		l.dropLocked()
	}
}

// dropLocked forgets the oldest span.
func (l *Log) dropLocked() {
	l.bytes -= l.spans[l.first].size()
	l.spans[l.first] = Span{}
	l.first = (l.first + 1) % len(l.spans)
	l.count--
}

func (l *Log) straightenLocked() {
	if l.first != 0 {
		slices.Reverse(l.spans[:l.first])
		slices.Reverse(l.spans[l.first:])
		slices.Reverse(l.spans)
		l.first = 0
	}
}

// Add takes a batch that was sent by another process and received at a time. From
// a node all spans are that node's, and its clock is known under its name.
func (l *Log) Add(b *Batch, sender string, node bool, received time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	machine := sender
	if !node && len(b.Spans) > 0 {
		machine += "/" + b.Spans[0].Node // the same user on several machines
	}
	c := l.clocks[machine]
	if c == nil {
		if l.clocks == nil {
			l.clocks = map[string]*clock{}
		}
		c = &clock{}
		if len(l.clocks) < maxClocks {
			l.clocks[machine] = c
		}
	}
	c.read(b, received)
	shift := c.shift()
	told := map[TraceID]bool{}
	for _, s := range b.Spans {
		if node {
			s.Node = sender
		}
		s.Start, s.End, s.Skew = s.Start.Add(shift), s.End.Add(shift), shift
		l.recordLocked(s)
		if b.Dropped > 0 && !told[s.Trace] {
			told[s.Trace] = true
			gap := s
			gap.Component, gap.Step, gap.Start = "journey", fmt.Sprintf("%d steps could not be sent from here: some of these may be missing", b.Dropped), s.End
			gap.Attrs = nil
			l.recordLocked(gap)
		}
	}
}

// Shift is what is to be added to times of a node's clock.
func (l *Log) Shift(node string) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.clocks[node]; c != nil {
		return c.shift()
	}
	return 0
}

// Trace returns the spans of one journey in the order of their beginnings.
func (l *Log) Trace(id TraceID) []Span {
	return l.find(func(s *Span) bool { return s.Trace == id })
}

// Request returns the hops of one request, of all journeys.
func (l *Log) Request(id string) []Span {
	return l.find(func(s *Span) bool { return s.Attrs[AttrRequest] == id })
}

func (l *Log) find(wanted func(s *Span) bool) []Span {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []Span
	for i := range l.count {
		if s := &l.spans[(l.first+i)%len(l.spans)]; wanted(s) {
			out = append(out, *s)
		}
	}
	slices.SortStableFunc(out, func(a, b Span) int {
		return cmp.Or(a.Start.Compare(b.Start), a.End.Compare(b.End))
	})
	return out
}

// ServeHTTP answers GET ?trace=<id> or ?request=<id> with spans, and takes a Batch by
// POST from a process of the cluster that is no node.
func (l *Log) ServeHTTP(w http.ResponseWriter, r *http.Request) { l.Serve(w, r, "", false) }

// Serve is ServeHTTP for a caller whose name is known.
func (l *Log) Serve(w http.ResponseWriter, r *http.Request, sender string, node bool) {
	switch r.Method {
	case http.MethodGet:
		var spans []Span
		if request := r.URL.Query().Get("request"); request != "" {
			spans = l.Request(request)
		} else {
			id := r.URL.Query().Get("trace")
			if len(id) != 32 {
				http.Error(w, fmt.Sprintf("trace: %q is not a trace ID of 32 hex digits", id), http.StatusBadRequest)
				return
			}
			spans = l.Trace(TraceID(id))
		}
		if spans == nil {
			spans = []Span{}
		}
		w.Header().Set("Content-Type", "application/json")
		// An error here means that the client has gone.
		_ = json.NewEncoder(w).Encode(spans)
	case http.MethodPost:
		received := time.Now()
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxPost))
		if err != nil {
			http.Error(w, "spans: "+err.Error(), http.StatusBadRequest)
			return
		}
		b, err := parseBatch(body)
		if err != nil {
			http.Error(w, "spans: "+err.Error(), http.StatusBadRequest)
			return
		}
		l.Add(b, sender, node, received)
		w.WriteHeader(http.StatusNoContent)
	default:
		w.Header().Set("Allow", "GET, POST")
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
	}
}
