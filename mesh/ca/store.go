package ca

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/periplus/periplus/mesh"
)

// The Secret that holds the authority, as Istio calls it.
const (
	secretName                 = "istio-ca-secret"
	secretType                 = corev1.SecretType("istio.io/ca-root")
	keyCert                    = "ca-cert.pem"
	keyKey                     = "ca-key.pem"
	keyRoot                    = "root-cert.pem"
	secretNote                 = "periplus.io/about"
	secretAbout                = "the authority of the mesh: whoever reads it can be any workload"
	attempts                   = 3
	namespaceManagedBy         = "app.kubernetes.io/managed-by"
	namespaceManagedByPeriplus = "periplus"
)

// Open returns the authority that the cluster has, and makes it, with its
// namespace, if there is none.
func Open(ctx context.Context, c kubernetes.Interface) (*Authority, error) {
	secrets := c.CoreV1().Secrets(mesh.RootNamespace)
	var last error
	for range attempts {
		s, err := secrets.Get(ctx, secretName, metav1.GetOptions{})
		switch {
		case err == nil:
			return Load(s.Data[keyCert], s.Data[keyKey])
		case !apierrors.IsNotFound(err):
			return nil, fmt.Errorf("read the mesh's authority: %w", err)
		}
		a, err := New()
		if err != nil {
			return nil, err
		}
		if err := a.save(ctx, c); err == nil {
			return a, nil
		} else if !apierrors.IsAlreadyExists(err) {
			return nil, fmt.Errorf("keep the mesh's authority: %w", err)
		} else {
			last = err // another server was quicker: take what it has made
		}
	}
	return nil, last
}

func (a *Authority) save(ctx context.Context, c kubernetes.Interface) error {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: mesh.RootNamespace, Labels: map[string]string{namespaceManagedBy: namespaceManagedByPeriplus},
	}}
	if _, err := c.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	key, err := a.keyPEM()
	if err != nil {
		return err
	}
	_, err = c.CoreV1().Secrets(mesh.RootNamespace).Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name: secretName, Namespace: mesh.RootNamespace,
			Annotations: map[string]string{secretNote: secretAbout},
		},
		Type: secretType,
		Data: map[string][]byte{keyCert: a.pem, keyKey: key, keyRoot: a.pem},
	}, metav1.CreateOptions{})
	return err
}
