package podtolerationrestriction

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/periplus/periplus/apiserver/admission"
	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/validation"
)

const (
	// Name is the plug-in's.
	Name = "PodTolerationRestriction"
	// defaults and whitelist are annotations of a namespace: lists of tolerations as JSON.
	defaults  = "scheduler.alpha.kubernetes.io/defaultTolerations"
	whitelist = "scheduler.alpha.kubernetes.io/tolerationsWhitelist"

	configuration = "podtolerationrestriction.admission.k8s.io/v1alpha1"
)

var namespaces = corev1.SchemeGroupVersion.WithResource("namespaces")

// A Configuration is for namespaces without the annotations
// (podtolerationrestriction.admission.k8s.io/v1alpha1).
type Configuration struct {
	metav1.TypeMeta `json:",inline"`
	Default         []corev1.Toleration `json:"default,omitempty"`
	Whitelist       []corev1.Toleration `json:"whitelist,omitempty"`
}

type plugin struct {
	objects registry.Reader
	config  Configuration
}

var (
	_ admission.Mutator   = (*plugin)(nil)
	_ admission.Validator = (*plugin)(nil)
)

// New returns the plug-in. config is a Configuration as YAML; nil is an empty one.
func New(objects registry.Reader, config []byte) (admission.Plugin, error) {
	p := &plugin{objects: objects}
	if len(config) == 0 {
		return p, nil
	}
	if err := yaml.UnmarshalStrict(config, &p.config); err != nil {
		return nil, fmt.Errorf("configuration of %s: %w", Name, err)
	}
	if p.config.APIVersion != configuration || p.config.Kind != "Configuration" {
		return nil, fmt.Errorf("configuration of %s: it is a %s of %q, want a Configuration of %s", Name, p.config.Kind, p.config.APIVersion, configuration)
	}
	return p, nil
}

func (*plugin) Name() string { return Name }

// Admit implements admission.Mutator.
func (p *plugin) Admit(ctx context.Context, a *admission.Attributes) error {
	pod, ok := a.Pod(admission.Create, admission.Update)
	if !ok {
		return nil
	}
	var more []corev1.Toleration
	if a.Operation == admission.Create {
		given, err := p.annotated(a.Namespace, defaults)
		if err != nil {
			return err
		}
		if more = given; more == nil {
			more = p.config.Default
		}
	}
	if validation.QOSClass(pod) != corev1.PodQOSBestEffort {
		more = append(slices.Clip(more), corev1.Toleration{Key: corev1.TaintNodeMemoryPressure, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule})
	}
	if len(more) > 0 {
		pod.Spec.Tolerations = merge(pod.Spec.Tolerations, more)
	}
	return p.Validate(ctx, a)
}

// Validate implements admission.Validator.
func (p *plugin) Validate(_ context.Context, a *admission.Attributes) error {
	pod, ok := a.Pod(admission.Create, admission.Update)
	if !ok || len(pod.Spec.Tolerations) == 0 {
		return nil
	}
	list, err := p.annotated(a.Namespace, whitelist)
	if err != nil {
		return err
	}
	scope := "namespace"
	if list == nil {
		list, scope = p.config.Whitelist, "cluster"
	}
	if !allowed(pod.Spec.Tolerations, list) {
		return fmt.Errorf("pod tolerations (possibly merged with namespace default tolerations) conflict with its %s whitelist", scope)
	}
	return nil
}

// annotated reads an annotation of a namespace; nil: it is not there.
func (p *plugin) annotated(namespace, key string) ([]corev1.Toleration, error) {
	obj, err := p.objects.Get(namespaces, "", namespace)
	if err != nil {
		return nil, err
	}
	text, ok := obj.(*corev1.Namespace).Annotations[key]
	if !ok {
		return nil, nil
	}
	out := []corev1.Toleration{}
	if text == "" {
		return out, nil
	}
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		return nil, err
	}
	return out, nil
}
