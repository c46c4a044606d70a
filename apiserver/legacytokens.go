package apiserver

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/periplus/periplus/apiserver/authn/serviceaccount"
)

// tracking is the ConfigMap that says since when it is noted which tokens in Secrets are used.
const tracking = "kube-apiserver-legacy-service-account-token-tracking"

// trackTokens says so from today on, unless that has been said already.
func trackTokens(ctx context.Context, c kubernetes.Interface) error {
	return ensure(ctx, c.CoreV1().ConfigMaps(metav1.NamespaceSystem), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: tracking, Namespace: metav1.NamespaceSystem},
		Data:       map[string]string{"since": time.Now().UTC().Format(serviceaccount.Day)},
	})
}
