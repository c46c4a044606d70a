package spans

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/apis/apiserver/install"
	"k8s.io/apiserver/pkg/authentication/user"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/tracing"
	tracingapi "k8s.io/component-base/tracing/api/v1"

	"github.com/periplus/periplus/apiserver/request"
)

// scope is the name under which spans are made.
const scope = "github.com/periplus/periplus/apiserver"

// A Tracer makes the spans of one API server. Shut it down.
type Tracer struct {
	provider tracing.TracerProvider
	tracer   trace.Tracer
	carriers propagation.TextMapPropagator
}

// New returns what a TracingConfiguration (apiserver.config.k8s.io/v1) says; nil without a
// file. server names this API server.
func New(ctx context.Context, file, server string) (*Tracer, error) {
	if file == "" {
		return nil, nil
	}
	config, err := read(file)
	if err != nil {
		return nil, fmt.Errorf("tracing-config-file: %w", err)
	}
	provider, err := tracing.NewProvider(ctx, config, nil, []resource.Option{resource.WithAttributes(
		attribute.String("service.name", "apiserver"), attribute.String("service.instance.id", server),
	)})
	if err != nil {
		return nil, fmt.Errorf("tracing-config-file: %w", err)
	}
	return &Tracer{provider, provider.Tracer(scope), tracing.Propagators()}, nil
}

func read(file string) (*tracingapi.TracingConfiguration, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("unable to read tracing configuration from %q: %w", file, err)
	}
	scheme := runtime.NewScheme()
	install.Install(scheme)
	config := &apiserver.TracingConfiguration{}
	if err := runtime.DecodeInto(serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDecoder(), data, config); err != nil {
		return nil, fmt.Errorf("unable to decode tracing configuration data: %w", err)
	}
	if errs := tracingapi.ValidateTracingConfiguration(&config.TracingConfiguration, utilfeature.DefaultFeatureGate, nil); len(errs) > 0 {
		return nil, fmt.Errorf("failed to validate tracing configuration: %w", errs.ToAggregate())
	}
	return &config.TracingConfiguration, nil
}

// Shutdown sends what waits.
func (t *Tracer) Shutdown(ctx context.Context) error { return t.provider.Shutdown(ctx) }

// Request begins the span of a request whose sender is known. Whoever is not an
// administrator or a monitor only gets a link to the span that he comes with: he shall not
// decide what is sampled.
func (t *Tracer) Request(ctx context.Context, r *http.Request, s *request.State) (context.Context, func(code int, written int64)) {
	outside := t.carriers.Extract(ctx, propagation.HeaderCarrier(r.Header))
	options := []trace.SpanStartOption{
		trace.WithSpanKind(trace.SpanKindServer), trace.WithTimestamp(s.Received), trace.WithAttributes(
			attribute.String("http.request.method", r.Method), attribute.String("url.path", r.URL.Path), attribute.String("url.scheme", "https"),
			attribute.String("http.target", r.URL.RequestURI()), attribute.String("user_agent.original", s.Agent), attribute.String("audit-id", s.AuditID),
		),
	}
	if remote := trace.SpanContextFromContext(outside); remote.IsValid() && remote.IsRemote() && !trusted(s.User) {
		options = append(options, trace.WithNewRoot(), trace.WithLinks(trace.Link{SpanContext: remote}))
	}
	ctx, span := t.tracer.Start(outside, name(r, &s.Info), options...)
	s.Traced = span.IsRecording()
	return ctx, func(code int, written int64) {
		if code == 0 {
			code = http.StatusOK
		}
		span.SetAttributes(attribute.Int("http.response.status_code", code), attribute.Int64("http.response.body.size", written))
		if code >= http.StatusInternalServerError {
			span.SetStatus(codes.Error, "")
		}
		span.End()
	}
}

func trusted(u user.Info) bool {
	return u != nil && slices.ContainsFunc(u.GetGroups(), func(g string) bool { return g == user.SystemPrivilegedGroup || g == user.MonitoringGroup })
}

// name is the kind of a request, without what clients choose.
func name(r *http.Request, i *request.Info) string {
	if !i.IsResource {
		return r.Method
	}
	path := "/api"
	if i.Group != "" {
		path = "/apis/" + i.Group
	}
	path += "/" + i.Version
	if i.Namespace != "" {
		path += "/namespaces/{:namespace}"
	}
	path += "/" + i.Resource
	if i.Name != "" {
		path += "/{:name}"
	}
	if i.Subresource != "" {
		path += "/" + i.Subresource
	}
	return r.Method + " " + path
}
