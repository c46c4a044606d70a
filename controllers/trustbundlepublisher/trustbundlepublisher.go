package trustbundlepublisher

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	certificateslisters "k8s.io/client-go/listers/certificates/v1"

	"github.com/periplus/periplus/controllers"
)

const signer = "kubernetes.io/kube-apiserver-serving"

type bundle = certificatesv1.ClusterTrustBundle

// Controller declares the publisher. It has one key, the empty one.
func Controller() controllers.Controller {
	bundles := []schema.GroupVersionResource{certificatesv1.SchemeGroupVersion.WithResource("clustertrustbundles")}
	return controllers.Controller{
		Name: "kube-apiserver-serving-clustertrustbundle-publisher-controller", Reads: bundles, Writes: bundles, Workers: 1, New: build,
	}
}

type reconciler struct {
	*controllers.Setup
	bundles certificateslisters.ClusterTrustBundleLister
	want    *bundle
}

func build(s *controllers.Setup) (controllers.Reconciler, error) {
	if len(s.Options.RootCA) == 0 {
		return nil, fmt.Errorf("no root CA: %w", controllers.ErrNotConfigured)
	}
	informer := s.Informers.Certificates().V1().ClusterTrustBundles()
	s.Watch(informer.Informer(), controllers.On(func(old, now *bundle) {
		if ours(old) || ours(now) {
			s.Queue.Add(controllers.Key{})
		}
	}))
	s.Queue.Add(controllers.Key{})
	return &reconciler{Setup: s, bundles: informer.Lister(), want: wanted(s.Options.RootCA)}, nil
}

func ours(b *bundle) bool { return b != nil && b.Spec.SignerName == signer }

// wanted is the bundle of these certificates; its name tells its content.
func wanted(ca []byte) *bundle {
	sum := sha256.Sum256(ca)
	return &bundle{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s:%x", strings.ReplaceAll(signer, "/", ":"), sum[:12])},
		Spec:       certificatesv1.ClusterTrustBundleSpec{SignerName: signer, TrustBundle: string(ca)},
	}
}

// Reconcile makes the one bundle that there shall be, then deletes the others.
func (r *reconciler) Reconcile(ctx context.Context, _ controllers.Key) (time.Duration, error) {
	api := r.Client.CertificatesV1().ClusterTrustBundles()
	have, err := r.bundles.Get(r.want.Name)
	switch {
	case apierrors.IsNotFound(err):
		_, err = api.Create(ctx, r.want, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			err = nil
		}
	case err == nil && have.Spec.TrustBundle != r.want.Spec.TrustBundle:
		again := have.DeepCopy()
		again.Spec.TrustBundle = r.want.Spec.TrustBundle
		_, err = api.Update(ctx, again, metav1.UpdateOptions{})
	}
	if err != nil {
		return 0, err
	}
	all, err := r.bundles.List(labels.Everything())
	if err != nil {
		return 0, err
	}
	var errs []error
	for _, b := range all {
		if !ours(b) || b.Name == r.want.Name {
			continue
		}
		if err := api.Delete(ctx, b.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			errs = append(errs, err)
		}
	}
	return 0, errors.Join(errs...)
}
