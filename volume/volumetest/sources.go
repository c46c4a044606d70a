package volumetest

import (
	"context"
	"sync"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/periplus/periplus/volume"
)

// Sources is a volume.Sources made of maps by "namespace/name".
type Sources struct {
	mu         sync.Mutex // guards the maps and Issue
	configMaps map[string]*corev1.ConfigMap
	secrets    map[string]*corev1.Secret
	issue      func(*authenticationv1.TokenRequest) (*authenticationv1.TokenRequest, error)
}

var _ volume.Sources = (*Sources)(nil)

// NewSources returns Sources without objects, which issue no tokens.
func NewSources() *Sources {
	return &Sources{configMaps: map[string]*corev1.ConfigMap{}, secrets: map[string]*corev1.Secret{}}
}

// SetConfigMap adds or replaces a ConfigMap; nil data removes it.
func (s *Sources) SetConfigMap(namespace, name string, data map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if data == nil {
		delete(s.configMaps, namespace+"/"+name)
		return
	}
	s.configMaps[namespace+"/"+name] = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: data}
}

// SetSecret adds or replaces a Secret; nil data removes it.
func (s *Sources) SetSecret(namespace, name string, data map[string][]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if data == nil {
		delete(s.secrets, namespace+"/"+name)
		return
	}
	s.secrets[namespace+"/"+name] = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: data}
}

// OnToken sets what issues tokens.
func (s *Sources) OnToken(f func(*authenticationv1.TokenRequest) (*authenticationv1.TokenRequest, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.issue = f
}

// ConfigMap implements volume.Sources.
func (s *Sources) ConfigMap(namespace, name string) (*corev1.ConfigMap, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.configMaps[namespace+"/"+name]; c != nil {
		return c, nil
	}
	return nil, apierrors.NewNotFound(corev1.Resource("configmap"), name)
}

// Secret implements volume.Sources.
func (s *Sources) Secret(namespace, name string) (*corev1.Secret, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.secrets[namespace+"/"+name]; c != nil {
		return c, nil
	}
	return nil, apierrors.NewNotFound(corev1.Resource("secret"), name)
}

// Node implements volume.Sources: a node with 4 CPUs and 8 GiB.
func (s *Sources) Node() (*corev1.Node, error) {
	return &corev1.Node{Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("4"),
		corev1.ResourceMemory: resource.MustParse("8Gi"),
	}}}, nil
}

// TrustAnchors implements volume.Sources: the name or the signer, as if it were PEM.
func (s *Sources) TrustAnchors(p *corev1.ClusterTrustBundleProjection) ([]byte, error) {
	if p.Name != nil {
		return []byte(*p.Name), nil
	}
	return []byte(*p.SignerName), nil
}

// Credential implements volume.Sources: a key and a chain that say whose they are.
func (s *Sources) Credential(_ context.Context, pod *corev1.Pod, _ volume.Projection, p *corev1.PodCertificateProjection) (volume.Credential, error) {
	return volume.Credential{Key: []byte("key of " + pod.Name + "\n"), Chain: []byte("chain of " + p.SignerName + "\n")}, nil
}

// PodStatus implements volume.Sources.
func (s *Sources) PodStatus(pod *corev1.Pod) corev1.PodStatus { return pod.Status }

// Token implements volume.Sources.
func (s *Sources) Token(_ context.Context, _, serviceAccount string, req *authenticationv1.TokenRequest) (*authenticationv1.TokenRequest, error) {
	s.mu.Lock()
	issue := s.issue
	s.mu.Unlock()
	if issue == nil {
		return nil, apierrors.NewNotFound(corev1.Resource("serviceaccounts"), serviceAccount)
	}
	return issue(req)
}
