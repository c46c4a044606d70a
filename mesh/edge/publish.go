package edge

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/l7"
)

// The Secret with the edge's certificate, and the roles by which nodes read it and
// look for pods with a sidecar.
const (
	SecretNamespace = metav1.NamespaceSystem
	SecretName      = "periplus-edge"
	secretRole      = "periplus:edge"
	podsRole        = "periplus:edge-pods"
	nodesGroup      = "system:nodes"
	rootKey         = "ca.crt"
)

// retry is how long to wait after the Secret could not be written.
const retry = 10 * time.Second

// AllowNodes lets nodes read the Secret, before there is one: they wait for it.
func AllowNodes(ctx context.Context, c kubernetes.Interface) error {
	meta := metav1.ObjectMeta{Name: secretRole, Namespace: SecretNamespace}
	_, err1 := c.RbacV1().Roles(SecretNamespace).Create(ctx, &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{SecretName}, Verbs: []string{"get", "list", "watch"},
	}}}, metav1.CreateOptions{})
	_, err2 := c.RbacV1().RoleBindings(SecretNamespace).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: meta, Subjects: nodes(), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: secretRole},
	}, metav1.CreateOptions{})
	return errors.Join(there(err1), there(err2))
}

// allowPods lets nodes find out which pods have a sidecar.
func allowPods(ctx context.Context, c kubernetes.Interface) error {
	meta := metav1.ObjectMeta{Name: podsRole}
	_, err1 := c.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list", "watch"},
	}}}, metav1.CreateOptions{})
	_, err2 := c.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta, Subjects: nodes(), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: podsRole},
	}, metav1.CreateOptions{})
	return errors.Join(there(err1), there(err2))
}

func nodes() []rbacv1.Subject {
	return []rbacv1.Subject{{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: nodesGroup}}
}

func there(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// A Publisher keeps the Secret for the edges of other nodes, on a server with a mesh.
type Publisher struct {
	Client kubernetes.Interface
	// Certificates gives the certificate; Root is its authority's, in PEM.
	Certificates l7.CertificateSource
	Root         []byte
	Log          *slog.Logger
}

// Run publishes until ctx ends. Several servers may do so: who finds a certificate in
// the first half of its life leaves it.
func (p *Publisher) Run(ctx context.Context) error {
	for {
		next, err := p.publish(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			p.Log.Warn("The edges of other nodes cannot be given a certificate of the mesh", base.KeyError, err)
			next = time.Now().Add(retry)
		}
		t := time.NewTimer(time.Until(next))
		select {
		case <-ctx.Done():
			t.Stop()
			return nil
		case <-t.C:
		}
	}
}

// publish brings the Secret in line and returns when to look again.
func (p *Publisher) publish(ctx context.Context) (time.Time, error) {
	if err := allowPods(ctx, p.Client); err != nil {
		return time.Time{}, err
	}
	secrets := p.Client.CoreV1().Secrets(SecretNamespace)
	old, err := secrets.Get(ctx, SecretName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		old = nil
	case err != nil:
		return time.Time{}, err
	default:
		if leaf := leafOf(old); leaf != nil && string(old.Data[rootKey]) == string(p.Root) && time.Now().Before(half(leaf)) {
			return half(leaf), nil
		}
	}
	cert, err := p.Certificates.Certificate("")
	if err != nil {
		return time.Time{}, err
	}
	want, err := p.secret(cert)
	if err != nil {
		return time.Time{}, err
	}
	if old == nil {
		_, err = secrets.Create(ctx, want, metav1.CreateOptions{})
	} else {
		want.ResourceVersion = old.ResourceVersion
		_, err = secrets.Update(ctx, want, metav1.UpdateOptions{})
	}
	if apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) {
		err = nil // another server was quicker
	}
	return half(cert.Leaf), err
}

func (p *Publisher) secret(c *tls.Certificate) (*corev1.Secret, error) {
	key, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	if err != nil {
		return nil, fmt.Errorf("key of the edge: %w", err)
	}
	var chain []byte
	for _, der := range c.Certificate {
		chain = append(chain, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: SecretName, Namespace: SecretNamespace},
		Type:       corev1.SecretTypeTLS,
		Data: map[string][]byte{
			corev1.TLSCertKey: chain, rootKey: p.Root,
			corev1.TLSPrivateKeyKey: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}),
		},
	}, nil
}

// half is when half of a certificate's life is over.
func half(leaf *x509.Certificate) time.Time {
	return leaf.NotBefore.Add(leaf.NotAfter.Sub(leaf.NotBefore) / 2)
}

func leafOf(s *corev1.Secret) *x509.Certificate {
	block, _ := pem.Decode(s.Data[corev1.TLSCertKey])
	if block == nil {
		return nil
	}
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil
	}
	return leaf
}
