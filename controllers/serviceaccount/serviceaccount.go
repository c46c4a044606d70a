package serviceaccount

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/periplus/periplus/controllers"
)

const accountName = "default"

// Controller declares the controller of default ServiceAccounts. Its keys are namespaces.
func Controller() controllers.Controller {
	core := corev1.SchemeGroupVersion
	return controllers.Controller{
		Name:   "serviceaccount-controller",
		Reads:  []schema.GroupVersionResource{core.WithResource("namespaces"), core.WithResource("serviceaccounts")},
		Writes: []schema.GroupVersionResource{core.WithResource("serviceaccounts")},
		New:    build,
	}
}

type reconciler struct {
	*controllers.Setup
	namespaces corelisters.NamespaceLister
	accounts   corelisters.ServiceAccountLister
}

func build(s *controllers.Setup) (controllers.Reconciler, error) {
	core := s.Informers.Core().V1()
	r := &reconciler{Setup: s, namespaces: core.Namespaces().Lister(), accounts: core.ServiceAccounts().Lister()}
	s.Watch(core.Namespaces().Informer(), controllers.On(func(_, now *corev1.Namespace) {
		if now != nil {
			s.Queue.Add(controllers.Key{Name: now.Name})
		}
	}))
	s.Watch(core.ServiceAccounts().Informer(), controllers.On(func(old, now *corev1.ServiceAccount) {
		if now == nil && old.Name == accountName {
			s.Queue.Add(controllers.Key{Name: old.Namespace})
		}
	}))
	return r, nil
}

// Reconcile creates the account unless the namespace is going.
func (r *reconciler) Reconcile(ctx context.Context, key controllers.Key) (time.Duration, error) {
	namespace, err := r.namespaces.Get(key.Name)
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	if err != nil || namespace.Status.Phase == corev1.NamespaceTerminating || namespace.DeletionTimestamp != nil {
		return 0, err
	}
	if _, err := r.accounts.ServiceAccounts(key.Name).Get(accountName); !apierrors.IsNotFound(err) {
		return 0, err
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: accountName, Namespace: key.Name}}
	_, err = r.Client.CoreV1().ServiceAccounts(key.Name).Create(ctx, account, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		err = nil
	}
	return 0, err
}
