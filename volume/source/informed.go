package source

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/periplus/periplus/volume"
)

// informed reads from shared informers.
type informed struct {
	configMaps listers.ConfigMapLister
	secrets    listers.SecretLister
}

func newInformed(f informers.SharedInformerFactory, notify func(volume.Ref)) (*informed, error) {
	configMaps, secrets := f.Core().V1().ConfigMaps(), f.Core().V1().Secrets()
	if _, err := configMaps.Informer().AddEventHandler(handler(volume.KindConfigMap, notify)); err != nil {
		return nil, err
	}
	if _, err := secrets.Informer().AddEventHandler(handler(volume.KindSecret, notify)); err != nil {
		return nil, err
	}
	return &informed{configMaps.Lister(), secrets.Lister()}, nil
}

func handler(kind string, notify func(volume.Ref)) cache.ResourceEventHandler {
	say := func(obj any) {
		if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
			obj = gone.Obj
		}
		if m, ok := obj.(metav1.Object); ok {
			notify(volume.Ref{Kind: kind, Namespace: m.GetNamespace(), Name: m.GetName()})
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    say,
		DeleteFunc: say,
		UpdateFunc: func(before, now any) {
			b, okB := before.(metav1.Object)
			n, okN := now.(metav1.Object)
			if !okB || !okN || b.GetResourceVersion() != n.GetResourceVersion() {
				say(now)
			}
		},
	}
}

// get returns nil when the object is not in the cache (yet).
func (i *informed) get(ref volume.Ref) any {
	if ref.Kind == volume.KindSecret {
		if s, err := i.secrets.Secrets(ref.Namespace).Get(ref.Name); err == nil {
			return s
		}
		return (*corev1.Secret)(nil)
	}
	if c, err := i.configMaps.ConfigMaps(ref.Namespace).Get(ref.Name); err == nil {
		return c
	}
	return (*corev1.ConfigMap)(nil)
}
