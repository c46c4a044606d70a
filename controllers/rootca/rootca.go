package rootca

import (
	"context"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/periplus/periplus/controllers"
)

const (
	configMapName  = "kube-root-ca.crt"
	descriptionKey = "kubernetes.io/description"
	description    = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. " +
		"No other usage is guaranteed across distributions of Kubernetes clusters."
)

// Controller declares the publisher of the root certificate. Its keys are namespaces.
func Controller() controllers.Controller {
	core := corev1.SchemeGroupVersion
	return controllers.Controller{
		Name:   "root-ca-certificate-publisher-controller",
		Reads:  []schema.GroupVersionResource{core.WithResource("namespaces"), core.WithResource("configmaps")},
		Writes: []schema.GroupVersionResource{core.WithResource("configmaps")},
		New:    build,
	}
}

type reconciler struct {
	*controllers.Setup
	namespaces corelisters.NamespaceLister
	configMaps corelisters.ConfigMapLister
	data       map[string]string
}

func build(s *controllers.Setup) (controllers.Reconciler, error) {
	if len(s.Options.RootCA) == 0 {
		return nil, fmt.Errorf("no root CA: %w", controllers.ErrNotConfigured)
	}
	core := s.Informers.Core().V1()
	r := &reconciler{
		Setup: s, namespaces: core.Namespaces().Lister(), configMaps: core.ConfigMaps().Lister(),
		data: map[string]string{"ca.crt": string(s.Options.RootCA)},
	}
	s.Watch(core.Namespaces().Informer(), controllers.On(func(_, now *corev1.Namespace) {
		if now != nil {
			s.Queue.Add(controllers.Key{Name: now.Name})
		}
	}))
	s.Watch(core.ConfigMaps().Informer(), controllers.On(func(old, now *corev1.ConfigMap) {
		if old != nil && old.Name == configMapName {
			s.Queue.Add(controllers.Key{Name: old.Namespace})
		}
	}))
	return r, nil
}

// Reconcile creates the ConfigMap, or puts it back as it should be.
func (r *reconciler) Reconcile(ctx context.Context, key controllers.Key) (time.Duration, error) {
	namespace, err := r.namespaces.Get(key.Name)
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	if err != nil || namespace.Status.Phase == corev1.NamespaceTerminating || namespace.DeletionTimestamp != nil {
		return 0, err
	}
	current, err := r.configMaps.ConfigMaps(key.Name).Get(configMapName)
	api := r.Client.CoreV1().ConfigMaps(key.Name)
	switch {
	case apierrors.IsNotFound(err):
		_, err = api.Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{
				Name: configMapName, Namespace: key.Name, Annotations: map[string]string{descriptionKey: description},
			},
			Data: r.data,
		}, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
			err = nil
		}
	case err != nil:
	case !maps.Equal(current.Data, r.data) || current.Annotations[descriptionKey] != description:
		wanted := current.DeepCopy()
		wanted.Data = r.data
		if wanted.Annotations == nil {
			wanted.Annotations = map[string]string{}
		}
		wanted.Annotations[descriptionKey] = description
		_, err = api.Update(ctx, wanted, metav1.UpdateOptions{})
	}
	return 0, err
}
