package podsecurity

import (
	"context"
	"errors"
	"fmt"
	"sync"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	standards "k8s.io/pod-security-admission/admission"
	"k8s.io/pod-security-admission/admission/api/load"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/metrics"
	"k8s.io/pod-security-admission/policy"

	"github.com/periplus/periplus/apiserver/admission"
	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/request"
)

// Name is the plug-in's.
const Name = "PodSecurity"

// auditPrefix is that of audit annotations.
const auditPrefix = api.AuditAnnotationPrefix

type plugin struct {
	// delegate is made when the first write may be of interest.
	delegate func() (*standards.Admission, error)
}

var _ admission.Validator = (*plugin)(nil)

// New returns the plug-in. config is a PodSecurityConfiguration as YAML: defaults for
// namespaces without labels, and exemptions; nil is privileged and no exemption.
func New(objects registry.Reader, config []byte) (admission.Plugin, error) {
	configuration, err := load.LoadFromData(config)
	if err != nil {
		return nil, fmt.Errorf("configuration of %s: %w", Name, err)
	}
	a := &standards.Admission{
		Configuration: configuration, Metrics: counters{}, PodSpecExtractor: standards.DefaultPodSpecExtractor{},
		NamespaceGetter: reader{objects}, PodLister: reader{objects},
	}
	if err := a.CompleteConfiguration(); err != nil {
		return nil, fmt.Errorf("configuration of %s: %w", Name, err)
	}
	return &plugin{sync.OnceValues(func() (*standards.Admission, error) {
		var err error
		if a.Evaluator, err = policy.NewEvaluator(policy.DefaultChecks(), nil); err != nil {
			return nil, err
		}
		return a, a.ValidateConfiguration()
	})}, nil
}

func (*plugin) Name() string { return Name }

// Validate implements admission.Validator.
func (p *plugin) Validate(ctx context.Context, a *admission.Attributes) error {
	if a.Operation != admission.Create && a.Operation != admission.Update || !about(a) {
		return nil
	}
	d, err := p.delegate()
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	said := d.Validate(ctx, attributes(a))
	for _, text := range said.Warnings {
		request.Warn(ctx, text)
	}
	for key, value := range said.AuditAnnotations {
		request.Annotate(ctx, auditPrefix+key, value)
	}
	if said.Allowed {
		return nil
	}
	return refusal(a, said)
}

// about reports whether a write is of a namespace, a pod or something with pods' template.
func about(a *admission.Attributes) bool {
	gr := a.Resource.GroupResource()
	return gr == corev1.Resource("namespaces") || standards.DefaultPodSpecExtractor{}.HasPodSpec(gr)
}

func attributes(a *admission.Attributes) api.Attributes {
	out := &api.AttributesRecord{
		Name: a.Name, Namespace: a.Namespace, Kind: a.Kind, Resource: a.Resource, Subresource: a.Subresource,
		Operation: admissionv1.Operation(a.Operation), Object: a.Object, OldObject: a.Old,
	}
	if out.Namespace == "" && a.Resource.Resource == "namespaces" {
		out.Namespace = a.Name
	}
	if a.User != nil {
		out.Username = a.User.GetName()
	}
	return out
}

// refusal is the client's answer.
func refusal(a *admission.Attributes, said *admissionv1.AdmissionResponse) error {
	out := apierrors.NewForbidden(a.Resource.GroupResource(), a.Name, errors.New("Not allowed by PodSecurity")) //nolint:staticcheck // upstream's words
	if r := said.Result; r != nil {
		s := &out.ErrStatus
		if r.Message != "" {
			s.Message = r.Message
		}
		if r.Reason != "" {
			s.Reason = r.Reason
		}
		if r.Details != nil {
			s.Details = r.Details
		}
		if r.Code != 0 {
			s.Code = r.Code
		}
	}
	return out
}

// reader gives the standards what they look up.
type reader struct{ objects registry.Reader }

// GetNamespace implements standards.NamespaceGetter.
func (r reader) GetNamespace(_ context.Context, name string) (*corev1.Namespace, error) {
	obj, err := r.objects.Get(corev1.SchemeGroupVersion.WithResource("namespaces"), "", name)
	if err != nil {
		return nil, err
	}
	return obj.(*corev1.Namespace), nil
}

// ListPods implements standards.PodLister. The list is the caller's.
func (r reader) ListPods(_ context.Context, namespace string) ([]*corev1.Pod, error) {
	list, err := r.objects.List(corev1.SchemeGroupVersion.WithResource("pods"), namespace)
	if err != nil {
		return nil, err
	}
	out := make([]*corev1.Pod, 0, len(list))
	for _, obj := range list {
		out = append(out, obj.(*corev1.Pod))
	}
	return out, nil
}

// counters count what was decided; see metrics.go.
type counters struct{}

var _ metrics.Recorder = counters{}

func (counters) RecordEvaluation(d metrics.Decision, v api.LevelVersion, m metrics.Mode, a api.Attributes) {
	recorder().RecordEvaluation(d, v, m, a)
}
func (counters) RecordExemption(a api.Attributes)         { recorder().RecordExemption(a) }
func (counters) RecordError(fatal bool, a api.Attributes) { recorder().RecordError(fatal, a) }
