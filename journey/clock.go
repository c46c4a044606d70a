package journey

import "time"

// sampleLife is how long a reading of another machine's clock counts: clocks drift.
const sampleLife = 5 * time.Minute

// A clock is what is known of another machine's: how far it is behind ours. Of all
// readings that of the batch which was quickest on its way has the least doubt.
//
//	their time   sent ─┐
//	our time           └─ received      offset = received - sent - way
//	                                    way: half of a round trip, which is not known
//	                                    better than ± half of it
type clock struct {
	offset time.Duration // to be added to their times
	doubt  time.Duration
	at     time.Time // of the reading
	known  bool
}

// read takes a reading.
func (c *clock) read(b *Batch, received time.Time) {
	if b.Sent.IsZero() {
		return
	}
	rtt := b.RTT
	if rtt <= 0 {
		rtt = time.Second // the first batch: nothing is known of the way
	}
	if c.known && received.Sub(c.at) < sampleLife && rtt/2 > c.doubt {
		return
	}
	*c = clock{offset: received.Sub(b.Sent) - rtt/2, doubt: rtt / 2, at: received, known: true}
}

// shift is what to add to their times: nothing while the clocks may be the same.
func (c *clock) shift() time.Duration {
	if !c.known || c.offset.Abs() <= c.doubt+time.Millisecond {
		return 0
	}
	return c.offset.Round(time.Microsecond)
}
