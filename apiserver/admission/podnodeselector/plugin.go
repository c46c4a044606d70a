package podnodeselector

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	"github.com/periplus/periplus/apiserver/admission"
	"github.com/periplus/periplus/apiserver/registry"
)

const (
	// Name is the plug-in's.
	Name = "PodNodeSelector"
	// annotation of a namespace selects nodes: "a=b,c=d".
	annotation = "scheduler.alpha.kubernetes.io/node-selector"
	// general is the name, among those of namespaces, of what those without the annotation get.
	general = "clusterDefaultNodeSelector"
)

var namespaces = corev1.SchemeGroupVersion.WithResource("namespaces")

type plugin struct {
	objects   registry.Reader
	selectors map[string]string // by namespace: what its pods may select at most
}

var (
	_ admission.Mutator   = (*plugin)(nil)
	_ admission.Validator = (*plugin)(nil)
)

// New returns the plug-in. config is YAML with selectors by the names of namespaces, and
// clusterDefaultNodeSelector, in podNodeSelectorPluginConfig; nil is none.
func New(objects registry.Reader, config []byte) (admission.Plugin, error) {
	var c struct {
		Selectors map[string]string `json:"podNodeSelectorPluginConfig"`
	}
	if err := yaml.Unmarshal(config, &c); err != nil {
		return nil, fmt.Errorf("configuration of %s: %w", Name, err)
	}
	return &plugin{objects, c.Selectors}, nil
}

func (*plugin) Name() string { return Name }

// Admit implements admission.Mutator.
func (p *plugin) Admit(ctx context.Context, a *admission.Attributes) error {
	pod, of, err := p.look(a)
	if err != nil || pod == nil {
		return err
	}
	pod.Spec.NodeSelector = labels.Merge(of, pod.Spec.NodeSelector)
	return p.Validate(ctx, a)
}

// look returns the pod that is made, nil if none is, and the selector of its namespace,
// which it does not contradict.
func (p *plugin) look(a *admission.Attributes) (*corev1.Pod, labels.Set, error) {
	pod, ok := a.Pod(admission.Create)
	if !ok {
		return nil, nil, nil
	}
	of, err := p.selector(a.Namespace)
	if err != nil {
		return nil, nil, err
	}
	if labels.Conflicts(of, pod.Spec.NodeSelector) {
		return nil, nil, errors.New("pod node label selector conflicts with its namespace node label selector")
	}
	return pod, of, nil
}

// Validate implements admission.Validator.
func (p *plugin) Validate(_ context.Context, a *admission.Attributes) error {
	pod, _, err := p.look(a)
	if err != nil || pod == nil {
		return err
	}
	most, err := labels.ConvertSelectorToLabelsMap(p.selectors[a.Namespace])
	if err != nil {
		return err
	}
	if len(most) == 0 {
		return nil
	}
	for key, value := range pod.Spec.NodeSelector {
		if allowed, ok := most[key]; !ok || allowed != value {
			return errors.New("pod node label selector labels conflict with its namespace whitelist")
		}
	}
	return nil
}

// selector is what the pods of a namespace select.
func (p *plugin) selector(namespace string) (labels.Set, error) {
	obj, err := p.objects.Get(namespaces, "", namespace)
	if err != nil {
		return nil, err
	}
	text, ok := obj.(*corev1.Namespace).Annotations[annotation]
	if !ok {
		text = p.selectors[general]
	}
	return labels.ConvertSelectorToLabelsMap(text)
}
