package audit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync/atomic"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/periplus/periplus/apiserver/request"
)

// An Auditor makes the records of requests and hands their events on. A nil Auditor
// audits nothing.
type Auditor struct {
	policy *Policy
	sinks  []Sink
	strict bool
	log    *slog.Logger
	Counts Counts
}

// Counts are what the metrics apiserver_audit_… show.
type Counts struct {
	Events, Rejected                       atomic.Int64
	None, Metadata, Request, WithResponses atomic.Int64 // requests by level
	// Errors are events that got lost: on their way into the log, to the webhook, and
	// because too many waited.
	Errors struct{ Log, Webhook, Buffered atomic.Int64 }
}

// counted is a sink whose failures are counted.
type counted struct {
	Sink
	lost *atomic.Int64
}

// Write implements Sink.
func (c counted) Write(events ...*auditv1.Event) error {
	err := c.Sink.Write(events...)
	if err != nil {
		c.lost.Add(int64(len(events)))
	}
	return err
}

// A Sink takes events. Write may be called concurrently; events are not modified.
type Sink interface {
	Write(events ...*auditv1.Event) error
	// Run ends when ctx has ended and what was written is where it belongs.
	Run(ctx context.Context) error
}

// New returns what the options want: nil without a policy.
func New(o Options, log *slog.Logger) (*Auditor, error) {
	if o == (Options{}) {
		return nil, nil
	}
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if o.PolicyFile == "" {
		return nil, nil
	}
	policy, err := ReadPolicy(o.PolicyFile)
	if err != nil {
		return nil, err
	}
	a := Make(policy, false, log)
	if o.LogPath != "" {
		file, err := openLog(&o, log)
		if err != nil {
			return nil, fmt.Errorf("audit-log-path: %w", err)
		}
		a.add(counted{file, &a.Counts.Errors.Log}, o.LogMode, batching{o.LogBuffer, o.LogBatch, o.LogWait.Duration, o.LogThrottle, o.LogQPS, o.LogBurst})
	}
	if o.WebhookConfig != "" {
		hook, err := openWebhook(&o, log)
		if err != nil {
			return nil, fmt.Errorf("audit-webhook-config-file: %w", err)
		}
		a.add(counted{hook, &a.Counts.Errors.Webhook}, o.WebhookMode, batching{o.BatchBuffer, o.BatchSize, o.BatchWait.Duration, o.WebhookThrottle, o.WebhookQPS, o.WebhookBurst})
	}
	return a, nil
}

// Make returns an auditor over sinks. strict fails requests whose first event cannot be written.
func Make(policy *Policy, strict bool, log *slog.Logger, sinks ...Sink) *Auditor {
	return &Auditor{policy: policy, sinks: sinks, strict: strict, log: log}
}

// add adds a sink, behind a queue if it is written to in batches.
func (a *Auditor) add(s Sink, mode string, b batching) {
	a.strict = a.strict || mode == modeStrict
	if mode == modeBatch {
		s = counted{newBatcher(s, b, a.log), &a.Counts.Errors.Buffered}
	}
	a.sinks = append(a.sinks, s)
}

// Run serves the backends until ctx has ended.
func (a *Auditor) Run(ctx context.Context) error {
	done := make(chan error, len(a.sinks))
	for _, s := range a.sinks {
		go func() { done <- s.Run(ctx) }()
	}
	var errs []error
	for range a.sinks {
		errs = append(errs, <-done)
	}
	return errors.Join(errs...)
}

func (a *Auditor) write(e *auditv1.Event) error {
	a.Counts.Events.Add(1)
	var errs []error
	for _, s := range a.sinks {
		if err := s.Write(e); err != nil {
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		a.log.Error("Audit event could not be written.", "auditID", e.AuditID, "error", err)
		return err
	}
	return nil
}

// Begin begins the record of a request whose sender is known (or was refused: then
// State.User is nil). long requests tell when their answer begins. The record is nil
// if the policy does not want one. An error, in strict mode, says that the request
// must not go on.
func (a *Auditor) Begin(r *http.Request, s *request.State, long bool) (*Record, error) {
	if a == nil {
		return nil, nil
	}
	d := a.policy.decide(s)
	switch d.level {
	case auditinternal.LevelNone:
		a.Counts.None.Add(1)
		return nil, nil
	case auditinternal.LevelMetadata:
		a.Counts.Metadata.Add(1)
	case auditinternal.LevelRequest:
		a.Counts.Request.Add(1)
	default:
		a.Counts.WithResponses.Add(1)
	}
	rec := &Record{auditor: a, decision: d, long: long}
	rec.event = auditv1.Event{
		TypeMeta: metav1.TypeMeta{Kind: "Event", APIVersion: auditv1.SchemeGroupVersion.String()},
		Level:    auditv1.Level(d.level), AuditID: types.UID(s.AuditID), RequestURI: r.URL.RequestURI(), Verb: s.Info.Verb,
		UserAgent: s.Agent, RequestReceivedTimestamp: metav1.NewMicroTime(s.Received),
	}
	if s.User != nil {
		rec.event.User = info(s.User)
	}
	for _, ip := range utilnet.SourceIPs(r) {
		rec.event.SourceIPs = append(rec.event.SourceIPs, ip.String())
	}
	if i := &s.Info; i.IsResource {
		rec.event.ObjectRef = &auditv1.ObjectReference{
			Namespace: i.Namespace, Name: i.Name, Resource: i.Resource, Subresource: i.Subresource, APIGroup: i.Group, APIVersion: i.Version,
		}
	}
	if err := rec.emit(auditv1.StageRequestReceived); err != nil && a.strict {
		a.Counts.Rejected.Add(1)
		return nil, err
	}
	return rec, nil
}

func info(u user.Info) authenticationv1.UserInfo {
	out := authenticationv1.UserInfo{Username: u.GetName(), UID: u.GetUID(), Groups: u.GetGroups()}
	for k, v := range u.GetExtra() {
		if out.Extra == nil {
			out.Extra = map[string]authenticationv1.ExtraValue{}
		}
		out.Extra[k] = v
	}
	return out
}

// wants reports whether the policy wants a stage.
func (d *decision) wants(stage auditv1.Stage) bool {
	return !slices.Contains(d.omit, auditinternal.Stage(stage))
}
