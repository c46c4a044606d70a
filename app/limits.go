package app

import (
	"fmt"
	"time"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// LimitsConfig is how much the API server does at a time, under upstream's names.
type LimitsConfig struct {
	// MaxInFlight and MaxMutatingInFlight are how many requests that read and that write are
	// served at once; with priority and fairness their sum is divided among its levels.
	MaxInFlight         int  `json:"max-requests-inflight,omitempty"`
	MaxMutatingInFlight int  `json:"max-mutating-requests-inflight,omitempty"`
	Fairness            bool `json:"enable-priority-and-fairness"`

	RequestTimeout    metav1.Duration `json:"request-timeout"`
	MinRequestTimeout int             `json:"min-request-timeout,omitempty"` // seconds

	// Tracing is a TracingConfiguration (apiserver.config.k8s.io/v1): where spans of requests go.
	Tracing string `json:"tracing-config-file,omitempty"`
}

func defaultLimits() LimitsConfig {
	out := LimitsConfig{MaxInFlight: 400, MaxMutatingInFlight: 200, Fairness: true, MinRequestTimeout: 1800}
	out.RequestTimeout.Duration = time.Minute
	return out
}

func (c *LimitsConfig) flags(f *pflag.FlagSet) {
	f.IntVar(&c.MaxInFlight, "max-requests-inflight", c.MaxInFlight, "requests that read and are served at once; their sum with those that write is divided among the priority levels")
	f.IntVar(&c.MaxMutatingInFlight, "max-mutating-requests-inflight", c.MaxMutatingInFlight, "requests that write and are served at once")
	f.BoolVar(&c.Fairness, "enable-priority-and-fairness", c.Fairness, "let requests wait by priority level and flow; false: only the two limits hold")
	f.DurationVar(&c.RequestTimeout.Duration, "request-timeout", c.RequestTimeout.Duration, "how long a request may take that is not a stream")
	f.StringVar(&c.Tracing, "tracing-config-file", c.Tracing, "TracingConfiguration (apiserver.config.k8s.io/v1): the OpenTelemetry collector that gets spans of requests, and how many")
	f.IntVar(&c.MinRequestTimeout, "min-request-timeout", c.MinRequestTimeout, "seconds that a watch lasts at least which does not say so, and twice that at most")
}

func (c *LimitsConfig) validate() error {
	switch {
	case c.MaxInFlight < 0:
		return fmt.Errorf("max-requests-inflight: %d is not allowed: must not be negative", c.MaxInFlight)
	case c.MaxMutatingInFlight < 0:
		return fmt.Errorf("max-mutating-requests-inflight: %d is not allowed: must not be negative", c.MaxMutatingInFlight)
	case c.Fairness && c.MaxInFlight+c.MaxMutatingInFlight == 0:
		return fmt.Errorf("max-requests-inflight: 0 is not allowed: must be positive, or max-mutating-requests-inflight must be, unless enable-priority-and-fairness is false")
	case c.RequestTimeout.Duration <= 0:
		return fmt.Errorf("request-timeout: %s is not allowed: must be positive", c.RequestTimeout.Duration)
	case c.MinRequestTimeout < 1:
		return fmt.Errorf("min-request-timeout: %d is not allowed: must be positive", c.MinRequestTimeout)
	}
	return nil
}
