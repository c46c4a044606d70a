package csrcleaner

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	certificateslisters "k8s.io/client-go/listers/certificates/v1"

	"github.com/periplus/periplus/controllers"
)

// How long requests are kept.
const (
	decided = time.Hour
	waiting = 24 * time.Hour
)

type csr = certificatesv1.CertificateSigningRequest

// Controller declares the cleaner. Its keys are requests.
func Controller() controllers.Controller {
	requests := []schema.GroupVersionResource{certificatesv1.SchemeGroupVersion.WithResource("certificatesigningrequests")}
	return controllers.Controller{
		Name: "certificatesigningrequest-cleaner-controller", Reads: requests, Writes: requests, Workers: 1, New: build,
	}
}

type reconciler struct {
	*controllers.Setup
	requests certificateslisters.CertificateSigningRequestLister
}

func build(s *controllers.Setup) (controllers.Reconciler, error) {
	informer := s.Informers.Certificates().V1().CertificateSigningRequests()
	r := &reconciler{Setup: s, requests: informer.Lister()}
	s.Watch(informer.Informer(), controllers.On(func(_, now *csr) {
		if now != nil {
			s.Queue.Add(controllers.Key{Name: now.Name})
		}
	}))
	return r, nil
}

// Reconcile deletes a request that is over, or comes again when it will be.
func (r *reconciler) Reconcile(ctx context.Context, key controllers.Key) (time.Duration, error) {
	c, err := r.requests.Get(key.Name)
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	if left := end(c).Sub(r.Clock.Now()); left > 0 {
		return left, nil
	}
	err = r.Client.CertificatesV1().CertificateSigningRequests().Delete(ctx, c.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(c.UID))})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		err = nil
	}
	return 0, err
}

// end is when a request is over.
func end(c *csr) time.Time {
	at := c.CreationTimestamp.Add(waiting)
	for _, x := range c.Status.Conditions {
		switch x.Type {
		case certificatesv1.CertificateApproved, certificatesv1.CertificateDenied, certificatesv1.CertificateFailed:
			if !x.LastUpdateTime.IsZero() {
				at = x.LastUpdateTime.Add(decided)
			}
		}
	}
	if block, _ := pem.Decode(c.Status.Certificate); block != nil {
		if cert, err := x509.ParseCertificate(block.Bytes); err == nil && cert.NotAfter.Before(at) {
			at = cert.NotAfter
		}
	}
	return at
}
