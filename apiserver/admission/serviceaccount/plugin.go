package serviceaccount

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/periplus/periplus/apiserver/admission"
	"github.com/periplus/periplus/apiserver/registry"
)

const (
	defaultAccount = "default"
	// mountPath is where every client library looks for its credentials.
	mountPath = "/var/run/secrets/kubernetes.io/serviceaccount"
	// lifetime of a token; one hour and a little, so that rotation at 80 % leaves time.
	lifetime = int64(60*60 + 7)
	// patience is how long a pod waits for its namespace's default account.
	patience = time.Second
	// mirror marks pods that a kubelet made from a file.
	mirror = "kubernetes.io/config.mirror"
)

var accounts = schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}

type plugin struct{ objects registry.Reader }

var (
	_ admission.Mutator   = plugin{}
	_ admission.Validator = plugin{}
)

// New returns the plug-in.
func New(objects registry.Reader) admission.Plugin { return plugin{objects} }

func (plugin) Name() string { return "ServiceAccount" }

func podOf(a *admission.Attributes) *corev1.Pod {
	if a.Operation != admission.Create || a.Subresource != "" {
		return nil
	}
	pod, ok := a.Object.(*corev1.Pod)
	if !ok || pod.Annotations[mirror] != "" {
		return nil
	}
	return pod
}

// Admit implements admission.Mutator.
func (p plugin) Admit(ctx context.Context, a *admission.Attributes) error {
	pod := podOf(a)
	if pod == nil {
		return nil
	}
	if pod.Spec.ServiceAccountName == "" {
		pod.Spec.ServiceAccountName = defaultAccount
	}
	pod.Spec.DeprecatedServiceAccount = pod.Spec.ServiceAccountName
	account, err := p.account(ctx, a, pod)
	if err != nil {
		return err
	}
	if automount(account, pod) {
		mountToken(pod)
	}
	if len(pod.Spec.ImagePullSecrets) == 0 {
		pod.Spec.ImagePullSecrets = append([]corev1.LocalObjectReference(nil), account.ImagePullSecrets...)
	}
	return nil
}

// Validate implements admission.Validator.
func (p plugin) Validate(ctx context.Context, a *admission.Attributes) error {
	pod := podOf(a)
	if pod == nil {
		return nil
	}
	_, err := p.account(ctx, a, pod)
	return err
}

func (p plugin) account(ctx context.Context, a *admission.Attributes, pod *corev1.Pod) (*corev1.ServiceAccount, error) {
	obj, err := p.objects.Get(accounts, a.Namespace, pod.Spec.ServiceAccountName)
	if w, ok := p.objects.(registry.Awaiter); ok && apierrors.IsNotFound(err) && pod.Spec.ServiceAccountName == defaultAccount {
		// Of a new namespace: its controller is about to make the account.
		limited, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		obj, err = w.Await(limited, accounts, a.Namespace, defaultAccount)
	}
	if err != nil {
		return nil, apierrors.NewForbidden(a.Resource.GroupResource(), a.Name,
			fmt.Errorf("error looking up service account %s/%s: %w", a.Namespace, pod.Spec.ServiceAccountName, err))
	}
	return obj.(*corev1.ServiceAccount), nil
}

func automount(account *corev1.ServiceAccount, pod *corev1.Pod) bool {
	if pod.Spec.AutomountServiceAccountToken != nil {
		return *pod.Spec.AutomountServiceAccountToken
	}
	return account.AutomountServiceAccountToken == nil || *account.AutomountServiceAccountToken
}

// mountToken adds the volume, and a mount to every container that has none there yet.
func mountToken(pod *corev1.Pod) {
	name := "kube-api-access-" + rand.String(5)
	needed := false
	mount := func(c *corev1.Container) {
		for _, m := range c.VolumeMounts {
			if m.MountPath == mountPath {
				return
			}
		}
		needed = true
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: name, ReadOnly: true, MountPath: mountPath})
	}
	for i := range pod.Spec.InitContainers {
		mount(&pod.Spec.InitContainers[i])
	}
	for i := range pod.Spec.Containers {
		mount(&pod.Spec.Containers[i])
	}
	if !needed {
		return
	}
	mode, expires := corev1.ProjectedVolumeSourceDefaultMode, lifetime
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		DefaultMode: &mode,
		Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token", ExpirationSeconds: &expires}},
			{ConfigMap: &corev1.ConfigMapProjection{
				LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"},
				Items:                []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}},
			}},
			{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{
				{Path: "namespace", FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.namespace"}}}}},
		},
	}}})
}
