package legacytokencleaner

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/controllers"
)

const (
	lastUsed     = "kubernetes.io/legacy-token-last-used"
	invalidSince = "kubernetes.io/legacy-token-invalid-since"
	// tracking is the ConfigMap that says since when the first label is written.
	tracking = "kube-apiserver-legacy-service-account-token-tracking"

	day = 24 * time.Hour
)

// Controller declares the cleaner. Its keys are Secrets.
func Controller() controllers.Controller {
	core := corev1.SchemeGroupVersion
	return controllers.Controller{
		Name:   "legacy-serviceaccount-token-cleaner-controller",
		Reads:  []schema.GroupVersionResource{core.WithResource("secrets"), core.WithResource("serviceaccounts"), core.WithResource("pods"), core.WithResource("configmaps")},
		Writes: []schema.GroupVersionResource{core.WithResource("secrets")}, Workers: 1, New: build,
	}
}

type reconciler struct {
	*controllers.Setup
	secrets  corelisters.SecretLister
	accounts corelisters.ServiceAccountLister
	pods     corelisters.PodLister
}

func build(s *controllers.Setup) (controllers.Reconciler, error) {
	core := s.Informers.Core().V1()
	r := &reconciler{Setup: s, secrets: core.Secrets().Lister(), accounts: core.ServiceAccounts().Lister(), pods: core.Pods().Lister()}
	s.Watch(core.Secrets().Informer(), controllers.On(func(_, now *corev1.Secret) {
		if now != nil && now.Type == corev1.SecretTypeServiceAccountToken {
			s.Queue.Add(controllers.KeyOf(now))
		}
	}))
	s.Watch(core.ServiceAccounts().Informer(), controllers.On(func(_, now *corev1.ServiceAccount) {
		if now == nil {
			return
		}
		for _, ref := range now.Secrets {
			s.Queue.Add(controllers.Key{Namespace: now.Namespace, Name: ref.Name})
		}
	}))
	s.Need(core.Pods().Informer())
	return r, nil
}

// Reconcile refuses a token or deletes it, or comes again when it may be time to.
func (r *reconciler) Reconcile(ctx context.Context, key controllers.Key) (time.Duration, error) {
	s, err := r.secrets.Secrets(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	if err != nil || s.Type != corev1.SecretTypeServiceAccountToken || s.DeletionTimestamp != nil || !r.madeForAccount(s) {
		return 0, err
	}
	now, at := r.Clock.Now(), s.CreationTimestamp.Add(r.period())
	if text, ok := s.Labels[lastUsed]; ok {
		used, err := time.Parse(time.DateOnly, text)
		if err != nil {
			r.Log.Warn("it is not known when a token was last used", base.KeyNamespace, s.Namespace, base.KeyName, s.Name, base.KeyError, err)
			return 0, nil
		}
		at = later(at, r.after(used))
	}
	if at.After(now) {
		return at.Sub(now), nil
	}
	switch left, err := r.tracked(ctx, now); {
	case err != nil || left > 0:
		return left, err
	case r.mounted(s):
		return day, nil
	}
	since, err := time.Parse(time.DateOnly, s.Labels[invalidSince])
	if err != nil {
		return 0, r.refuse(ctx, s, now)
	}
	if until := r.after(since); until.After(now) {
		return until.Sub(now), nil
	}
	r.Log.Info("token of a service account is deleted: nobody uses it", base.KeyNamespace, s.Namespace, base.KeyName, s.Name)
	err = r.Client.CoreV1().Secrets(s.Namespace).Delete(ctx, s.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &s.ResourceVersion}})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		err = nil
	}
	return 0, err
}

func (r *reconciler) period() time.Duration { return r.Options.LegacyTokenPeriod }

// after is the first moment at which a day is more than the period ago.
func (r *reconciler) after(date time.Time) time.Time { return date.Add(day + r.period()) }

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// madeForAccount reports whether the Secret's account lists it: then nobody else made it.
func (r *reconciler) madeForAccount(s *corev1.Secret) bool {
	account, err := r.accounts.ServiceAccounts(s.Namespace).Get(s.Annotations[corev1.ServiceAccountNameKey])
	if err != nil {
		return false
	}
	if uid := s.Annotations[corev1.ServiceAccountUIDKey]; uid != "" && types.UID(uid) != account.UID {
		return false
	}
	return slices.ContainsFunc(account.Secrets, func(ref corev1.ObjectReference) bool { return ref.Name == s.Name })
}

// tracked returns how long the use of tokens has to be noted before one may be unused.
func (r *reconciler) tracked(ctx context.Context, now time.Time) (time.Duration, error) {
	m, err := r.Client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, tracking, metav1.GetOptions{})
	if err != nil {
		return 0, fmt.Errorf("since when the use of tokens is noted: %w", err)
	}
	since, err := time.Parse(time.DateOnly, m.Data["since"])
	if err != nil {
		return 0, fmt.Errorf("since when the use of tokens is noted: %w", err)
	}
	return max(0, r.after(since).Sub(now)), nil
}

func (r *reconciler) mounted(s *corev1.Secret) bool {
	pods, err := r.pods.Pods(s.Namespace).List(labels.Everything())
	return err != nil || slices.ContainsFunc(pods, func(p *corev1.Pod) bool { return uses(p, s.Name) })
}

// refuse lets the API server accept the token no longer.
func (r *reconciler) refuse(ctx context.Context, s *corev1.Secret, now time.Time) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": s.UID, "labels": map[string]string{invalidSince: now.UTC().Format(time.DateOnly)}}})
	if err != nil {
		return err
	}
	r.Log.Info("token of a service account is not accepted any more: nobody uses it", base.KeyNamespace, s.Namespace, base.KeyName, s.Name)
	_, err = r.Client.CoreV1().Secrets(s.Namespace).Patch(ctx, s.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		err = nil
	}
	return err
}
