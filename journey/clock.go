package journey

import "time"

// sampleLife is how long a reading of another machine's clock counts: clocks drift.
const sampleLife = 5 * time.Minute

// roughly is how much a clock may be wrong before the first round trip is known.
const roughly = 2 * time.Second

// A clock is what is known of another machine's: how far it is behind ours. A sender
// says with each batch how long the one before took; of all readings that of the
// quickest has the least doubt.
//
//	their time   sent ───────────────── answered   RTT, told with the next batch
//	our time          └── received ──┘             offset = received - sent - RTT/2 ± RTT/2
type clock struct {
	offset time.Duration // to be added to their times
	doubt  time.Duration
	at     time.Time // of the reading
	known  bool

	sent, received time.Time // of the last batch
}

// read takes a reading.
func (c *clock) read(b *Batch, received time.Time) {
	if b.Sent.IsZero() {
		return
	}
	if b.RTT > 0 && !b.Of.IsZero() && b.Of.Equal(c.sent) {
		doubt := b.RTT / 2
		if !c.known || doubt < c.doubt || received.Sub(c.at) >= sampleLife {
			c.offset, c.doubt, c.at, c.known = c.received.Sub(c.sent)-doubt, doubt, received, true
		}
	}
	if !c.known {
		// The way of a batch is short beside what is looked for here.
		c.offset, c.doubt = received.Sub(b.Sent), roughly
	}
	c.sent, c.received = b.Sent, received
}

// shift is what to add to their times: nothing while the clocks may be the same.
func (c *clock) shift() time.Duration {
	if c.offset.Abs() <= c.doubt+time.Millisecond {
		return 0
	}
	return c.offset.Round(time.Microsecond)
}
