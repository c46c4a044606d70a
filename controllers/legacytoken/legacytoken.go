package legacytoken

import (
	"bytes"
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/periplus/periplus/controllers"
)

// Controller declares the controller of tokens in Secrets. Its keys are Secrets.
func Controller() controllers.Controller {
	core := corev1.SchemeGroupVersion
	return controllers.Controller{
		Name:   "serviceaccount-token-controller",
		Reads:  []schema.GroupVersionResource{core.WithResource("secrets"), core.WithResource("serviceaccounts")},
		Writes: []schema.GroupVersionResource{core.WithResource("secrets")}, Workers: 5, New: build,
	}
}

type reconciler struct {
	*controllers.Setup
	client   kubernetes.Interface // the manager's own: this controller has no role of its own
	secrets  corelisters.SecretLister
	accounts corelisters.ServiceAccountLister
}

func build(s *controllers.Setup) (controllers.Reconciler, error) {
	if s.Options.LegacyToken == nil {
		return nil, fmt.Errorf("no key to sign tokens: %w", controllers.ErrNotConfigured)
	}
	core := s.Informers.Core().V1()
	r := &reconciler{Setup: s, client: s.Env.Client, secrets: core.Secrets().Lister(), accounts: core.ServiceAccounts().Lister()}
	s.Watch(core.Secrets().Informer(), controllers.On(func(_, now *corev1.Secret) {
		if now != nil && now.Type == corev1.SecretTypeServiceAccountToken {
			s.Queue.Add(controllers.KeyOf(now))
		}
	}))
	s.Watch(core.ServiceAccounts().Informer(), controllers.On(func(old, now *corev1.ServiceAccount) {
		if old != nil && now != nil && old.UID == now.UID {
			return // nothing in a token changes with its account
		}
		account := now
		if account == nil {
			account = old
		}
		r.each(account.Namespace, account.Name, func(s *corev1.Secret) { r.Queue.Add(controllers.KeyOf(s)) })
	}))
	return r, nil
}

// each calls f for the Secrets with tokens of an account.
func (r *reconciler) each(namespace, account string, f func(*corev1.Secret)) {
	list, err := r.secrets.Secrets(namespace).List(labels.Everything())
	if err != nil {
		return
	}
	for _, s := range list {
		if s.Type == corev1.SecretTypeServiceAccountToken && s.Annotations[corev1.ServiceAccountNameKey] == account {
			f(s)
		}
	}
}

// Reconcile fills a Secret, or deletes it.
func (r *reconciler) Reconcile(ctx context.Context, key controllers.Key) (time.Duration, error) {
	s, err := r.secrets.Secrets(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	name := ""
	if err == nil {
		name = s.Annotations[corev1.ServiceAccountNameKey]
	}
	if err != nil || s.Type != corev1.SecretTypeServiceAccountToken || name == "" || s.DeletionTimestamp != nil {
		return 0, err
	}
	account, err := r.accounts.ServiceAccounts(s.Namespace).Get(name)
	if apierrors.IsNotFound(err) {
		// The account may have been made a moment ago.
		account, err = r.client.CoreV1().ServiceAccounts(s.Namespace).Get(ctx, name, metav1.GetOptions{})
	}
	uid := s.Annotations[corev1.ServiceAccountUIDKey]
	if apierrors.IsNotFound(err) || err == nil && uid != "" && uid != string(account.UID) {
		return 0, r.remove(ctx, s)
	}
	if err != nil {
		return 0, err
	}
	return 0, r.fill(ctx, s, account)
}

func (r *reconciler) remove(ctx context.Context, s *corev1.Secret) error {
	err := r.client.CoreV1().Secrets(s.Namespace).Delete(ctx, s.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(s.UID))})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// fill puts in what is missing or no longer right.
func (r *reconciler) fill(ctx context.Context, s *corev1.Secret, account *corev1.ServiceAccount) error {
	ca := r.Options.RootCA
	if len(s.Data[corev1.ServiceAccountTokenKey]) > 0 && s.Annotations[corev1.ServiceAccountUIDKey] == string(account.UID) &&
		bytes.Equal(s.Data[corev1.ServiceAccountRootCAKey], ca) && len(s.Data[corev1.ServiceAccountNamespaceKey]) > 0 {
		return nil
	}
	out := s.DeepCopy()
	if out.Data == nil {
		out.Data = map[string][]byte{}
	}
	out.Annotations[corev1.ServiceAccountUIDKey] = string(account.UID)
	if len(ca) > 0 {
		out.Data[corev1.ServiceAccountRootCAKey] = ca
	}
	if len(out.Data[corev1.ServiceAccountNamespaceKey]) == 0 {
		out.Data[corev1.ServiceAccountNamespaceKey] = []byte(s.Namespace)
	}
	if len(out.Data[corev1.ServiceAccountTokenKey]) == 0 {
		token, err := r.Options.LegacyToken(account, s.Name)
		if err != nil {
			return err
		}
		out.Data[corev1.ServiceAccountTokenKey] = []byte(token)
	}
	_, err := r.client.CoreV1().Secrets(s.Namespace).Update(ctx, out, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
