package hollow

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// A Delay is a distribution of times. As text:
//
//	300ms               always the same
//	100ms-2s            evenly between the two
//	p50=300ms,p99=2s    log-normal with this median and this 99th percentile, as the
//	                    starts of real pods are
//	never               it does not happen
type Delay struct {
	kind      delayKind
	low, high time.Duration // fixed: low; log-normal: median and p99
}

type delayKind int

const (
	fixed delayKind = iota
	even
	logNormal
	never
)

var _ pflag.Value = (*Delay)(nil)

// Fixed is always d.
func Fixed(d time.Duration) Delay { return Delay{low: d} }

// Between is evenly distributed.
func Between(low, high time.Duration) Delay { return Delay{kind: even, low: low, high: high} }

// Set implements pflag.Value.
func (d *Delay) Set(s string) error {
	parsed, err := ParseDelay(s)
	if err == nil {
		*d = parsed
	}
	return err
}

// Type implements pflag.Value.
func (*Delay) Type() string { return "delay" }

// ParseDelay reads a distribution.
func ParseDelay(s string) (Delay, error) {
	bad := fmt.Errorf(`%q is not allowed: must be a time like "300ms", a range like "100ms-2s", "p50=300ms,p99=2s" or "never"`, s)
	var d Delay
	var low, high string
	switch {
	case s == "never":
		return Delay{kind: never}, nil
	case strings.HasPrefix(s, "p50="):
		var ok bool
		d.kind = logNormal
		if low, high, ok = strings.Cut(strings.TrimPrefix(s, "p50="), ",p99="); !ok {
			return d, bad
		}
	default:
		var ok bool
		if low, high, ok = strings.Cut(s, "-"); ok {
			d.kind = even
		} else {
			high = low
		}
	}
	var err, err2 error
	d.low, err = time.ParseDuration(low)
	d.high, err2 = time.ParseDuration(high)
	if err != nil || err2 != nil || d.low < 0 || d.high < d.low || d.kind == logNormal && d.low == 0 {
		return Delay{}, bad
	}
	if d.kind == fixed {
		d.high = 0
	}
	return d, nil
}

// String is the text that ParseDelay reads.
func (d Delay) String() string {
	switch d.kind {
	case even:
		return d.low.String() + "-" + d.high.String()
	case logNormal:
		return "p50=" + d.low.String() + ",p99=" + d.high.String()
	case never:
		return "never"
	}
	return d.low.String()
}

// z99 is the 99th percentile of the standard normal distribution.
const z99 = 2.3263478740408408

// sample draws a time; false: never.
func (d Delay) sample() (time.Duration, bool) {
	switch d.kind {
	case never:
		return 0, false
	case even:
		if d.high > d.low {
			return d.low + rand.N(d.high-d.low), true //nolint:gosec // no secret
		}
	case logNormal:
		sigma := math.Log(float64(d.high)/float64(d.low)) / z99
		return time.Duration(float64(d.low) * math.Exp(sigma*rand.NormFloat64())), true //nolint:gosec // no secret
	}
	return d.low, true
}
