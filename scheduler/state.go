package scheduler

import "slices"

// A Slot is a plug-in's place in a CycleState, handed out by Framework.NewSlot.
type Slot int

// CycleState carries what plug-ins compute for one pod from one extension point
// to the next. It is used by one goroutine at a time.
type CycleState struct {
	values  []any
	filters []FilterPlugin // those that did not skip
	scorers []scorer       // those that did not skip
}

// A Cloner is a value in a CycleState that a PreFilterExtension changes.
type Cloner interface{ Clone() any }

// Get returns the value in slot, nil when there is none.
func (s *CycleState) Get(slot Slot) any { return s.values[slot] }

// Set puts v into slot.
func (s *CycleState) Set(slot Slot, v any) { s.values[slot] = v }

// Clone returns a copy whose Cloner values can be changed independently.
func (s *CycleState) Clone() *CycleState {
	c := s.share()
	for i, v := range c.values {
		if cl, ok := v.(Cloner); ok {
			c.values[i] = cl.Clone()
		}
	}
	return c
}

// share returns a copy that has the same values.
func (s *CycleState) share() *CycleState {
	return &CycleState{values: slices.Clone(s.values), filters: s.filters, scorers: s.scorers}
}
