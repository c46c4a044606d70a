package bootstrapsigner

import (
	"context"
	"maps"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/periplus/periplus/base/jointoken"
	"github.com/periplus/periplus/controllers"
)

const (
	tokenType = corev1.SecretType("bootstrap.kubernetes.io/token")
	configMap = "cluster-info"
	content   = "kubeconfig"
	prefix    = "jws-kubeconfig-"
)

// Controller declares the signer. It has one key.
func Controller() controllers.Controller {
	core := corev1.SchemeGroupVersion
	return controllers.Controller{
		Name:  "bootstrap-signer-controller",
		Reads: []schema.GroupVersionResource{core.WithResource("secrets"), core.WithResource("configmaps")}, Writes: []schema.GroupVersionResource{core.WithResource("configmaps")},
		Workers: 1, New: build,
	}
}

type reconciler struct {
	*controllers.Setup
	secrets    corelisters.SecretLister
	configMaps corelisters.ConfigMapLister
}

var key = controllers.Key{Namespace: metav1.NamespacePublic, Name: configMap}

func build(s *controllers.Setup) (controllers.Reconciler, error) {
	core := s.Informers.Core().V1()
	r := &reconciler{Setup: s, secrets: core.Secrets().Lister(), configMaps: core.ConfigMaps().Lister()}
	s.Watch(core.Secrets().Informer(), controllers.On(func(old, now *corev1.Secret) {
		for _, x := range []*corev1.Secret{old, now} {
			if x != nil && x.Type == tokenType && x.Namespace == metav1.NamespaceSystem {
				s.Queue.Add(key)
				return
			}
		}
	}))
	s.Watch(core.ConfigMaps().Informer(), controllers.On(func(_, now *corev1.ConfigMap) {
		if now != nil && now.Name == key.Name && now.Namespace == key.Namespace {
			s.Queue.Add(key)
		}
	}))
	return r, nil
}

// Reconcile makes the signatures those of the tokens that there are.
func (r *reconciler) Reconcile(ctx context.Context, _ controllers.Key) (time.Duration, error) {
	m, err := r.configMaps.ConfigMaps(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	list, err := r.secrets.Secrets(metav1.NamespaceSystem).List(labels.Everything())
	if err != nil {
		return 0, err
	}
	want := map[string]string{}
	for k, v := range m.Data {
		if !strings.HasPrefix(k, prefix) {
			want[k] = v
		}
	}
	for _, s := range list {
		if s.Type != tokenType || s.DeletionTimestamp != nil || string(s.Data["usage-bootstrap-signing"]) != "true" {
			continue
		}
		if until, err := time.Parse(time.RFC3339, string(s.Data["expiration"])); err == nil && !r.Clock.Now().Before(until) {
			continue // the token cleaner takes it away, which is an event
		}
		id := string(s.Data["token-id"])
		if jointoken.IsID(id) && len(s.Data["token-secret"]) > 0 {
			want[prefix+id] = jointoken.Sign(m.Data[content], jointoken.Token{ID: id, Secret: string(s.Data["token-secret"])})
		}
	}
	if maps.Equal(want, m.Data) {
		return 0, nil
	}
	signed := m.DeepCopy()
	signed.Data = want
	_, err = r.Client.CoreV1().ConfigMaps(key.Namespace).Update(ctx, signed, metav1.UpdateOptions{})
	return 0, err
}
