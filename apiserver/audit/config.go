package audit

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Options are what the flags --audit-… say, under upstream's names and with its defaults.
type Options struct {
	// PolicyFile is an audit.k8s.io/v1 Policy. Without one nothing is audited.
	PolicyFile string `json:"audit-policy-file,omitempty"`

	// LogPath is the log file, "-" for the standard output, "" for none.
	LogPath      string `json:"audit-log-path,omitempty"`
	LogFormat    string `json:"audit-log-format,omitempty"`    // json or legacy
	LogMode      string `json:"audit-log-mode,omitempty"`      // batch, blocking or blocking-strict
	LogMaxAge    int    `json:"audit-log-maxage,omitempty"`    // days that old files are kept; 0: any time
	LogMaxBackup int    `json:"audit-log-maxbackup,omitempty"` // old files that are kept; 0: all
	LogMaxSize   int    `json:"audit-log-maxsize,omitempty"`   // megabytes of a file before a new one is begun
	LogCompress  bool   `json:"audit-log-compress,omitempty"`  // old files, with gzip
	LogVersion   string `json:"audit-log-version,omitempty"`   // of the events

	LogBuffer       int             `json:"audit-log-batch-buffer-size,omitempty"` // events that wait, at most
	LogBatch        int             `json:"audit-log-batch-max-size,omitempty"`    // events that are written at once
	LogWait         metav1.Duration `json:"audit-log-batch-max-wait"`              // for more events
	LogThrottle     bool            `json:"audit-log-batch-throttle-enable,omitempty"`
	LogQPS          float32         `json:"audit-log-batch-throttle-qps,omitempty"` // batches a second
	LogBurst        int             `json:"audit-log-batch-throttle-burst,omitempty"`
	LogTruncate     bool            `json:"audit-log-truncate-enabled,omitempty"`
	LogTruncateAll  int64           `json:"audit-log-truncate-max-batch-size,omitempty"` // bytes that are written at once
	LogTruncateEach int64           `json:"audit-log-truncate-max-event-size,omitempty"` // bytes of an event

	// WebhookConfig is a kubeconfig file that names the program events are sent to.
	WebhookConfig  string          `json:"audit-webhook-config-file,omitempty"`
	WebhookMode    string          `json:"audit-webhook-mode,omitempty"`
	WebhookBackoff metav1.Duration `json:"audit-webhook-initial-backoff"` // before the first retry

	BatchBuffer     int             `json:"audit-webhook-batch-buffer-size,omitempty"` // events that wait, at most
	BatchSize       int             `json:"audit-webhook-batch-max-size,omitempty"`    // events of one request, at most
	BatchWait       metav1.Duration `json:"audit-webhook-batch-max-wait"`              // for more events, at most
	WebhookThrottle bool            `json:"audit-webhook-batch-throttle-enable"`
	WebhookQPS      float32         `json:"audit-webhook-batch-throttle-qps,omitempty"` // requests a second
	WebhookBurst    int             `json:"audit-webhook-batch-throttle-burst,omitempty"`
	WebhookVersion  string          `json:"audit-webhook-version,omitempty"` // of the events
	Truncate        bool            `json:"audit-webhook-truncate-enabled,omitempty"`
	TruncateAll     int64           `json:"audit-webhook-truncate-max-batch-size,omitempty"` // bytes of a request
	TruncateEach    int64           `json:"audit-webhook-truncate-max-event-size,omitempty"` // bytes of an event
}

// Defaults are upstream's.
func Defaults() Options {
	return Options{
		LogFormat: formatJSON, LogMode: modeBlocking, WebhookMode: modeBatch, WebhookBackoff: metav1.Duration{Duration: 10 * time.Second},
		BatchBuffer: 10000, BatchSize: 400, BatchWait: metav1.Duration{Duration: 30 * time.Second}, TruncateAll: 10 << 20, TruncateEach: 100 << 10,
		LogBuffer: 10000, LogBatch: 1, LogQPS: 10, LogBurst: 15, LogTruncateAll: 10 << 20, LogTruncateEach: 100 << 10, LogVersion: version,
		WebhookThrottle: true, WebhookQPS: 10, WebhookBurst: 15, WebhookVersion: version,
	}
}

// Flags binds o's fields to flags.
func (o *Options) Flags(f *pflag.FlagSet) {
	f.StringVar(&o.PolicyFile, "audit-policy-file", o.PolicyFile, "audit policy (audit.k8s.io/v1): which requests are logged, and how much of them")
	f.StringVar(&o.LogPath, "audit-log-path", o.LogPath, `audit log file, "-" for the standard output`)
	f.StringVar(&o.LogFormat, "audit-log-format", o.LogFormat, "json or legacy")
	f.StringVar(&o.LogMode, "audit-log-mode", o.LogMode, "batch, blocking or blocking-strict")
	f.IntVar(&o.LogMaxAge, "audit-log-maxage", o.LogMaxAge, "days for which old audit log files are kept (0: any time)")
	f.IntVar(&o.LogMaxBackup, "audit-log-maxbackup", o.LogMaxBackup, "how many old audit log files are kept (0: all)")
	f.IntVar(&o.LogMaxSize, "audit-log-maxsize", o.LogMaxSize, "megabytes of an audit log file before the next is begun (0: 100)")
	f.BoolVar(&o.LogCompress, "audit-log-compress", o.LogCompress, "compress old audit log files with gzip")
	f.StringVar(&o.LogVersion, "audit-log-version", o.LogVersion, "version of the events in the audit log")
	f.IntVar(&o.LogBuffer, "audit-log-batch-buffer-size", o.LogBuffer, "audit events that wait to be written in the mode batch; more are dropped")
	f.IntVar(&o.LogBatch, "audit-log-batch-max-size", o.LogBatch, "audit events that are written at once")
	f.DurationVar(&o.LogWait.Duration, "audit-log-batch-max-wait", o.LogWait.Duration, "how long an audit event waits for others before it is written")
	f.BoolVar(&o.LogThrottle, "audit-log-batch-throttle-enable", o.LogThrottle, "limit how often the audit log is written to")
	f.Float32Var(&o.LogQPS, "audit-log-batch-throttle-qps", o.LogQPS, "batches a second")
	f.IntVar(&o.LogBurst, "audit-log-batch-throttle-burst", o.LogBurst, "batches at once, if there were fewer before")
	f.BoolVar(&o.LogTruncate, "audit-log-truncate-enabled", o.LogTruncate, "shorten audit events that are too large for the log")
	f.Int64Var(&o.LogTruncateAll, "audit-log-truncate-max-batch-size", o.LogTruncateAll, "bytes that are written to the audit log at once")
	f.Int64Var(&o.LogTruncateEach, "audit-log-truncate-max-event-size", o.LogTruncateEach, "bytes of an audit event in the log; larger ones lose their objects")
	f.StringVar(&o.WebhookConfig, "audit-webhook-config-file", o.WebhookConfig, "kubeconfig file that names the program audit events are sent to")
	f.StringVar(&o.WebhookMode, "audit-webhook-mode", o.WebhookMode, "batch, blocking or blocking-strict")
	f.DurationVar(&o.WebhookBackoff.Duration, "audit-webhook-initial-backoff", o.WebhookBackoff.Duration, "wait before the first retry of a request to the audit webhook")
	f.IntVar(&o.BatchBuffer, "audit-webhook-batch-buffer-size", o.BatchBuffer, "audit events that wait to be sent; more are dropped")
	f.IntVar(&o.BatchSize, "audit-webhook-batch-max-size", o.BatchSize, "audit events in one request")
	f.DurationVar(&o.BatchWait.Duration, "audit-webhook-batch-max-wait", o.BatchWait.Duration, "how long an audit event waits for others")
	f.BoolVar(&o.WebhookThrottle, "audit-webhook-batch-throttle-enable", o.WebhookThrottle, "limit how often the audit webhook is asked")
	f.Float32Var(&o.WebhookQPS, "audit-webhook-batch-throttle-qps", o.WebhookQPS, "requests a second")
	f.IntVar(&o.WebhookBurst, "audit-webhook-batch-throttle-burst", o.WebhookBurst, "requests at once, if there were fewer before")
	f.StringVar(&o.WebhookVersion, "audit-webhook-version", o.WebhookVersion, "version of the events for the audit webhook")
	f.BoolVar(&o.Truncate, "audit-webhook-truncate-enabled", o.Truncate, "shorten audit events that are too large, and split requests")
	f.Int64Var(&o.TruncateAll, "audit-webhook-truncate-max-batch-size", o.TruncateAll, "bytes of a request to the audit webhook")
	f.Int64Var(&o.TruncateEach, "audit-webhook-truncate-max-event-size", o.TruncateEach, "bytes of an audit event; larger ones lose their objects")
}

// Validate names the first value that is not allowed.
func (o *Options) Validate() error {
	modes := []string{modeBatch, modeBlocking, modeStrict}
	for _, c := range []struct {
		flag, value string
		allowed     []string
	}{
		{"audit-log-format", o.LogFormat, []string{formatJSON, formatLegacy}}, {"audit-log-mode", o.LogMode, modes}, {"audit-webhook-mode", o.WebhookMode, modes},
		{"audit-log-version", o.LogVersion, []string{version}}, {"audit-webhook-version", o.WebhookVersion, []string{version}},
	} {
		if !slices.Contains(c.allowed, c.value) {
			return fmt.Errorf("%s: %q is not allowed: must be one of %s", c.flag, c.value, strings.Join(c.allowed, ", "))
		}
	}
	for _, c := range []struct {
		flag  string
		value int64
		least int64
	}{
		{"audit-log-maxage", int64(o.LogMaxAge), 0}, {"audit-log-maxbackup", int64(o.LogMaxBackup), 0}, {"audit-log-maxsize", int64(o.LogMaxSize), 0},
		{"audit-webhook-batch-buffer-size", int64(o.BatchBuffer), 1}, {"audit-webhook-batch-max-size", int64(o.BatchSize), 1},
		{"audit-log-batch-buffer-size", int64(o.LogBuffer), 1}, {"audit-log-batch-max-size", int64(o.LogBatch), 1},
		{"audit-log-batch-throttle-burst", int64(o.LogBurst), 1}, {"audit-webhook-batch-throttle-burst", int64(o.WebhookBurst), 1},
		{"audit-log-truncate-max-batch-size", o.LogTruncateAll, 1}, {"audit-log-truncate-max-event-size", o.LogTruncateEach, 1},
		{"audit-webhook-truncate-max-batch-size", o.TruncateAll, 1}, {"audit-webhook-truncate-max-event-size", o.TruncateEach, 1},
	} {
		if c.value < c.least {
			return fmt.Errorf("%s: %d is not allowed: must be at least %d", c.flag, c.value, c.least)
		}
	}
	switch {
	case o.LogThrottle && o.LogQPS <= 0:
		return fmt.Errorf("audit-log-batch-throttle-qps: %v is not allowed: must be positive", o.LogQPS)
	case o.WebhookThrottle && o.WebhookQPS <= 0:
		return fmt.Errorf("audit-webhook-batch-throttle-qps: %v is not allowed: must be positive", o.WebhookQPS)
	case o.LogTruncate && o.LogTruncateAll < o.LogTruncateEach:
		return fmt.Errorf("audit-log-truncate-max-batch-size: %d is not allowed: must be at least audit-log-truncate-max-event-size", o.LogTruncateAll)
	case o.LogPath == "" && o.WebhookConfig == "" && o.PolicyFile != "":
		return fmt.Errorf("audit-policy-file: there is a policy and nowhere to log to: give audit-log-path or audit-webhook-config-file")
	case o.PolicyFile == "" && (o.LogPath != "" || o.WebhookConfig != ""):
		return fmt.Errorf("audit-policy-file: nothing is logged without a policy: give one")
	}
	return nil
}

// The modes of backends: in batches, before the request goes on, or the request fails
// if its event cannot be written.
const (
	modeBatch    = "batch"
	modeBlocking = "blocking"
	modeStrict   = "blocking-strict"
)

// version is that of the events.
const version = "audit.k8s.io/v1"

// The formats of the log.
const (
	formatJSON   = "json"
	formatLegacy = "legacy"
)
