package podcertificatecleaner

import (
	"context"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	certificateslisters "k8s.io/client-go/listers/certificates/v1"

	"github.com/periplus/periplus/controllers"
)

// kept is for how long a request is kept.
const kept = 30 * time.Minute

// Controller declares the cleaner. Its keys are requests.
func Controller() controllers.Controller {
	requests := []schema.GroupVersionResource{certificatesv1.SchemeGroupVersion.WithResource("podcertificaterequests")}
	return controllers.Controller{
		Name: "podcertificaterequest-cleaner-controller", Reads: requests, Writes: requests, Workers: 1, New: build,
	}
}

type reconciler struct {
	*controllers.Setup
	requests certificateslisters.PodCertificateRequestLister
}

func build(s *controllers.Setup) (controllers.Reconciler, error) {
	informer := s.Informers.Certificates().V1().PodCertificateRequests()
	s.Watch(informer.Informer(), controllers.On(func(old, now *certificatesv1.PodCertificateRequest) {
		if old == nil {
			s.Queue.Add(controllers.KeyOf(now))
		}
	}))
	return &reconciler{Setup: s, requests: informer.Lister()}, nil
}

// Reconcile deletes a request that is old, or comes again when it will be.
func (r *reconciler) Reconcile(ctx context.Context, key controllers.Key) (time.Duration, error) {
	q, err := r.requests.PodCertificateRequests(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	if left := q.CreationTimestamp.Add(kept).Sub(r.Clock.Now()); left > 0 {
		return left, nil
	}
	err = r.Client.CertificatesV1().PodCertificateRequests(q.Namespace).Delete(ctx, q.Name,
		metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(q.UID))})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		err = nil
	}
	return 0, err
}
