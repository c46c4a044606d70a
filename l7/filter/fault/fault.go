package fault

import (
	"math/rand/v2"
	"time"

	"github.com/periplus/periplus/l7"
)

// Filter injects faults. Fractions are millionths of the requests.
type Filter struct {
	Delay         time.Duration
	DelayFraction uint32

	// AbortStatus is the HTTP status, AbortGRPC, if not zero, the gRPC status.
	AbortStatus   int
	AbortGRPC     int
	AbortFraction uint32
}

// All is the fraction of all requests.
const All = 1_000_000

var _ l7.Filter = (*Filter)(nil)

// Request implements l7.Filter.
func (f *Filter) Request(x *l7.Exchange) *l7.Reply {
	if f.Delay > 0 && hit(f.DelayFraction) {
		x.Flags |= l7.FlagDelay
		t := time.NewTimer(f.Delay)
		defer t.Stop()
		select {
		case <-t.C:
		case <-x.Context().Done():
			return &l7.Reply{Close: true, Flag: l7.FlagDownstreamDisconnect}
		}
	}
	if (f.AbortStatus != 0 || f.AbortGRPC != 0) && hit(f.AbortFraction) {
		status := f.AbortStatus
		if status == 0 {
			status = 503
		}
		return &l7.Reply{Status: status, GRPCStatus: f.AbortGRPC, Body: "fault filter abort", Flag: l7.FlagFault, Details: "fault_filter_abort"}
	}
	return nil
}

func hit(fraction uint32) bool { return fraction > 0 && rand.Uint32N(All) < fraction }
