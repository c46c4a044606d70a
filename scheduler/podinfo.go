package scheduler

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-helpers/scheduling/corev1"
)

// A PodInfo is a pod with what plug-ins need of it, computed once. It is immutable.
type PodInfo struct {
	Pod      *v1.Pod
	Priority int32
	Requests Resources
	NonZero  Resources // as Requests, with defaults for scores
	Ports    []HostPort
	Affinity *PodAffinity // nil when the pod has no terms about other pods
}

// UID identifies the pod.
func (p *PodInfo) UID() types.UID { return p.Pod.UID }

// BestEffort reports whether the pod requests neither CPU nor memory.
func (p *PodInfo) BestEffort() bool {
	return p.Requests.Base[CPU] == 0 && p.Requests.Base[Memory] == 0
}

// PodAffinity are a pod's terms about other pods, parsed.
type PodAffinity struct {
	Required      []AffinityTerm
	RequiredAnti  []AffinityTerm
	Preferred     []WeightedTerm
	PreferredAnti []WeightedTerm
	Err           error // a selector that cannot be parsed
}

// An AffinityTerm selects pods in the nodes of one topology domain.
type AffinityTerm struct {
	Namespaces        sets.Set[string]
	NamespaceSelector labels.Selector
	Selector          labels.Selector
	TopologyKey       string
}

// A WeightedTerm is a preferred AffinityTerm.
type WeightedTerm struct {
	AffinityTerm
	Weight int32
}

// Matches reports whether the term selects pod; namespaceLabels returns the labels of a namespace.
func (t *AffinityTerm) Matches(pod *v1.Pod, namespaceLabels func(string) labels.Set) bool {
	// A missing namespaceSelector became Nothing, an empty one Everything.
	if !t.Namespaces.Has(pod.Namespace) && !t.NamespaceSelector.Matches(namespaceLabels(pod.Namespace)) {
		return false
	}
	return t.Selector.Matches(labels.Set(pod.Labels))
}

// NewPodInfo computes what plug-ins need of pod.
func NewPodInfo(pod *v1.Pod, table *ResourceTable) *PodInfo {
	p := &PodInfo{Pod: pod, Priority: corev1.PodPriority(pod), Ports: hostPorts(pod)}
	p.Requests, p.NonZero = table.Requests(pod)
	p.Affinity = parseAffinity(pod)
	return p
}

// withPod returns a PodInfo for a newer version of the same pod.
func (p *PodInfo) withPod(pod *v1.Pod) *PodInfo {
	c := *p
	c.Pod = pod
	return &c
}

func parseAffinity(pod *v1.Pod) *PodAffinity {
	a := pod.Spec.Affinity
	if a == nil || a.PodAffinity == nil && a.PodAntiAffinity == nil {
		return nil
	}
	p := &PodAffinity{}
	if a.PodAffinity != nil {
		p.Required = p.terms(pod, a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
		p.Preferred = p.weighted(pod, a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if a.PodAntiAffinity != nil {
		p.RequiredAnti = p.terms(pod, a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
		p.PreferredAnti = p.weighted(pod, a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if len(p.Required)+len(p.RequiredAnti)+len(p.Preferred)+len(p.PreferredAnti) == 0 && p.Err == nil {
		return nil
	}
	return p
}

func (p *PodAffinity) terms(pod *v1.Pod, in []v1.PodAffinityTerm) []AffinityTerm {
	var out []AffinityTerm
	for i := range in {
		t, err := newAffinityTerm(pod, &in[i])
		if err != nil {
			p.Err = err
			continue
		}
		out = append(out, t)
	}
	return out
}

func (p *PodAffinity) weighted(pod *v1.Pod, in []v1.WeightedPodAffinityTerm) []WeightedTerm {
	var out []WeightedTerm
	for i := range in {
		t, err := newAffinityTerm(pod, &in[i].PodAffinityTerm)
		if err != nil {
			p.Err = err
			continue
		}
		out = append(out, WeightedTerm{t, in[i].Weight})
	}
	return out
}

func newAffinityTerm(pod *v1.Pod, term *v1.PodAffinityTerm) (AffinityTerm, error) {
	selector, err := metav1.LabelSelectorAsSelector(term.LabelSelector)
	if err != nil {
		return AffinityTerm{}, fmt.Errorf("pod affinity labelSelector: %w", err)
	}
	namespaces, err := metav1.LabelSelectorAsSelector(term.NamespaceSelector)
	if err != nil {
		return AffinityTerm{}, fmt.Errorf("pod affinity namespaceSelector: %w", err)
	}
	names := sets.New(term.Namespaces...)
	if len(names) == 0 && term.NamespaceSelector == nil {
		names.Insert(pod.Namespace)
	}
	return AffinityTerm{Namespaces: names, NamespaceSelector: namespaces, Selector: selector, TopologyKey: term.TopologyKey}, nil
}

// A HostPort is a port that a pod takes on its node.
type HostPort struct {
	IP       string // "0.0.0.0" for all addresses
	Protocol v1.Protocol
	Port     int32
}

// Conflicts reports whether two pods on a node cannot have a and b.
func (a HostPort) Conflicts(b HostPort) bool {
	return a.Port == b.Port && a.Protocol == b.Protocol &&
		(a.IP == b.IP || a.IP == "0.0.0.0" || b.IP == "0.0.0.0")
}

// hostPorts returns the host ports of a pod's containers and sidecars.
func hostPorts(pod *v1.Pod) []HostPort {
	var out []HostPort
	add := func(c *v1.Container) {
		for i := range c.Ports {
			p := &c.Ports[i]
			if p.HostPort <= 0 {
				continue
			}
			hp := HostPort{IP: p.HostIP, Protocol: p.Protocol, Port: p.HostPort}
			if hp.IP == "" {
				hp.IP = "0.0.0.0"
			}
			if hp.Protocol == "" {
				hp.Protocol = v1.ProtocolTCP
			}
			out = append(out, hp)
		}
	}
	for i := range pod.Spec.Containers {
		add(&pod.Spec.Containers[i])
	}
	for i := range pod.Spec.InitContainers {
		if c := &pod.Spec.InitContainers[i]; c.RestartPolicy != nil && *c.RestartPolicy == v1.ContainerRestartPolicyAlways {
			add(c)
		}
	}
	return out
}

// ImageName returns the name under which nodes report an image: with ":latest" when it has no tag.
func ImageName(name string) string {
	if strings.LastIndexByte(name, ':') <= strings.LastIndexByte(name, '/') {
		name += ":latest"
	}
	return name
}
