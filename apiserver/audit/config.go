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

	// WebhookConfig is a kubeconfig file that names the program events are sent to.
	WebhookConfig  string          `json:"audit-webhook-config-file,omitempty"`
	WebhookMode    string          `json:"audit-webhook-mode,omitempty"`
	WebhookBackoff metav1.Duration `json:"audit-webhook-initial-backoff"` // before the first retry

	BatchBuffer  int             `json:"audit-webhook-batch-buffer-size,omitempty"` // events that wait, at most
	BatchSize    int             `json:"audit-webhook-batch-max-size,omitempty"`    // events of one request, at most
	BatchWait    metav1.Duration `json:"audit-webhook-batch-max-wait"`              // for more events, at most
	Truncate     bool            `json:"audit-webhook-truncate-enabled,omitempty"`
	TruncateAll  int64           `json:"audit-webhook-truncate-max-batch-size,omitempty"` // bytes of a request
	TruncateEach int64           `json:"audit-webhook-truncate-max-event-size,omitempty"` // bytes of an event
}

// Defaults are upstream's.
func Defaults() Options {
	return Options{
		LogFormat: formatJSON, LogMode: modeBlocking, WebhookMode: modeBatch, WebhookBackoff: metav1.Duration{Duration: 10 * time.Second},
		BatchBuffer: 10000, BatchSize: 400, BatchWait: metav1.Duration{Duration: 30 * time.Second}, TruncateAll: 10 << 20, TruncateEach: 100 << 10,
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
	f.StringVar(&o.WebhookConfig, "audit-webhook-config-file", o.WebhookConfig, "kubeconfig file that names the program audit events are sent to")
	f.StringVar(&o.WebhookMode, "audit-webhook-mode", o.WebhookMode, "batch, blocking or blocking-strict")
	f.DurationVar(&o.WebhookBackoff.Duration, "audit-webhook-initial-backoff", o.WebhookBackoff.Duration, "wait before the first retry of a request to the audit webhook")
	f.IntVar(&o.BatchBuffer, "audit-webhook-batch-buffer-size", o.BatchBuffer, "audit events that wait to be sent; more are dropped")
	f.IntVar(&o.BatchSize, "audit-webhook-batch-max-size", o.BatchSize, "audit events in one request")
	f.DurationVar(&o.BatchWait.Duration, "audit-webhook-batch-max-wait", o.BatchWait.Duration, "how long an audit event waits for others")
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
		{"audit-webhook-truncate-max-batch-size", o.TruncateAll, 1}, {"audit-webhook-truncate-max-event-size", o.TruncateEach, 1},
	} {
		if c.value < c.least {
			return fmt.Errorf("%s: %d is not allowed: must be at least %d", c.flag, c.value, c.least)
		}
	}
	switch {
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

// The formats of the log.
const (
	formatJSON   = "json"
	formatLegacy = "legacy"
)
