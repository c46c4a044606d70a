package tokencleaner

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

const tokenType = corev1.SecretType("bootstrap.kubernetes.io/token")

// Controller declares the cleaner. Its keys are Secrets.
func Controller() controllers.Controller {
	secrets := []schema.GroupVersionResource{corev1.SchemeGroupVersion.WithResource("secrets")}
	return controllers.Controller{Name: "token-cleaner-controller", Reads: secrets, Writes: secrets, Workers: 1, New: build}
}

type reconciler struct {
	*controllers.Setup
	secrets corelisters.SecretLister
}

func build(s *controllers.Setup) (controllers.Reconciler, error) {
	informer := s.Informers.Core().V1().Secrets()
	r := &reconciler{Setup: s, secrets: informer.Lister()}
	s.Watch(informer.Informer(), controllers.On(func(_, now *corev1.Secret) {
		if now != nil && now.Type == tokenType && now.Namespace == metav1.NamespaceSystem {
			s.Queue.Add(controllers.KeyOf(now))
		}
	}))
	return r, nil
}

// Reconcile deletes a token that has expired, or comes again when it will have.
func (r *reconciler) Reconcile(ctx context.Context, key controllers.Key) (time.Duration, error) {
	s, err := r.secrets.Secrets(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	if err != nil || len(s.Data["expiration"]) == 0 {
		return 0, err
	}
	until, err := time.Parse(time.RFC3339, string(s.Data["expiration"]))
	if err != nil {
		return 0, nil //nolint:nilerr // it is not valid and nobody can use it; a person made it
	}
	if left := until.Sub(r.Clock.Now()); left > 0 {
		return left, nil
	}
	err = r.Client.CoreV1().Secrets(s.Namespace).Delete(ctx, s.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(s.UID))})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		err = nil
	}
	return 0, err
}
