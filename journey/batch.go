package journey

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"
)

// A Batch is what another process sends: spans, and what helps to read its clock.
type Batch struct {
	// Sent is the sender's time when it sent the batch.
	Sent time.Time `json:"sent,omitzero"`
	// RTT is how long the batch that was sent at Of took until it was answered; 0: unknown.
	RTT time.Duration `json:"rtt,omitempty"`
	Of  time.Time     `json:"of,omitzero"`
	// Dropped is how many spans the sender had to forget since its last batch.
	Dropped int    `json:"dropped,omitempty"`
	Spans   []Span `json:"spans"`
}

// What a span of another process may have at most. Longer texts are cut, further
// attributes are left out.
const (
	maxText  = 512
	maxAttrs = 16
)

// parseBatch reads a Batch, or an array of spans alone.
func parseBatch(body []byte) (*Batch, error) {
	b := &Batch{}
	var err error
	if trimmed := bytes.TrimLeft(body, " \t\r\n"); len(trimmed) > 0 && trimmed[0] == '[' {
		err = json.Unmarshal(body, &b.Spans)
	} else {
		err = json.Unmarshal(body, b)
	}
	if err != nil {
		return nil, err
	}
	for i := range b.Spans {
		if err := b.Spans[i].check(); err != nil {
			return nil, fmt.Errorf("span %d: %w", i, err)
		}
	}
	return b, nil
}

// check refuses what is no span, and cuts what is too long.
func (s *Span) check() error {
	if len(s.Trace) != 32 {
		return fmt.Errorf("trace %q is not a trace ID of 32 hex digits", cut(string(s.Trace)))
	}
	if s.Start.IsZero() || s.End.Before(s.Start) {
		return fmt.Errorf("start %s and end %s are no interval", s.Start.Format(time.RFC3339Nano), s.End.Format(time.RFC3339Nano))
	}
	for _, text := range []*string{&s.Component, &s.Step, &s.Kind, &s.Namespace, &s.Name, &s.Node, (*string)(&s.UID)} {
		*text = cut(*text)
	}
	if len(s.Attrs) > maxAttrs {
		for _, k := range slices.Sorted(maps.Keys(s.Attrs))[maxAttrs:] {
			delete(s.Attrs, k)
		}
	}
	for k, v := range s.Attrs {
		if len(k) > maxText {
			delete(s.Attrs, k)
			continue
		}
		s.Attrs[k] = cut(v)
	}
	return nil
}

func cut(s string) string {
	if len(s) > maxText {
		return s[:maxText]
	}
	return s
}

// size is about how much memory a span needs, in bytes.
func (s *Span) size() int {
	n := 240 + len(s.Trace) + len(s.Component) + len(s.Step) + len(s.Kind) + len(s.Namespace) + len(s.Name) + len(s.UID) + len(s.Node)
	if s.Attrs != nil {
		n += 48
	}
	for k, v := range s.Attrs {
		n += 48 + len(k) + len(v)
	}
	return n
}
