package journey

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
)

const (
	// keep is how many spans a Log holds; the oldest go first.
	keep = 16384
	// maxPost bounds the body of spans sent by another process.
	maxPost = 1 << 20
)

// A Log keeps the newest spans of a cluster in memory and serves them. It is
// the Recorder of components in the API server's process.
type Log struct {
	mu    sync.Mutex
	spans []Span // a ring once it is full
	next  int
}

var (
	_ Recorder     = (*Log)(nil)
	_ http.Handler = (*Log)(nil)
)

// NewLog returns an empty log.
func NewLog() *Log { return &Log{} }

// Path is where a Log is served: GET returns the spans of ?trace=, POST adds an array of spans.
const Path = "/periplus/v1/spans"

// Record implements Recorder.
func (l *Log) Record(s Span) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.spans) < keep {
		l.spans = append(l.spans, s)
	} else {
		l.spans[l.next] = s
		l.next = (l.next + 1) % keep
	}
}

// Trace returns the spans of one journey in the order of their beginnings.
func (l *Log) Trace(id TraceID) []Span {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []Span
	for i := range l.spans {
		if l.spans[i].Trace == id {
			out = append(out, l.spans[i])
		}
	}
	slices.SortStableFunc(out, func(a, b Span) int {
		return cmp.Or(a.Start.Compare(b.Start), a.End.Compare(b.End))
	})
	return out
}

// ServeHTTP answers GET ?trace=<id> with the journey's spans, and takes spans by POST.
func (l *Log) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodGet:
		id := r.URL.Query().Get("trace")
		if len(id) != 32 {
			http.Error(w, fmt.Sprintf("trace: %q is not a trace ID of 32 hex digits", id), http.StatusBadRequest)
			return
		}
		spans := l.Trace(TraceID(id))
		if spans == nil {
			spans = []Span{}
		}
		w.Header().Set("Content-Type", "application/json")
		// An error here means that the client has gone.
		_ = json.NewEncoder(w).Encode(spans)
	case http.MethodPost:
		var spans []Span
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxPost)).Decode(&spans); err != nil {
			http.Error(w, "spans: "+err.Error(), http.StatusBadRequest)
			return
		}
		for _, s := range spans {
			l.Record(s)
		}
		w.WriteHeader(http.StatusNoContent)
	default:
		w.Header().Set("Allow", "GET, POST")
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
	}
}
