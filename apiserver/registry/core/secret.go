package core

import (
	"context"
	"crypto/tls"
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
	"github.com/periplus/periplus/apiserver/validation"
)

func secrets() *registry.Resource {
	s := registry.Funcs[*corev1.Secret]{
		DefaultFunc: defaultSecret,
		PrepareUpdate: func(_ context.Context, secret, old *corev1.Secret) {
			if secret.Type == "" {
				secret.Type = old.Type
			}
		},
		ValidateCreate: func(_ context.Context, secret *corev1.Secret) field.ErrorList { return secretData(secret) },
		ValidateChange: func(_ context.Context, secret, old *corev1.Secret) field.ErrorList {
			errs := validation.Immutable(secret.Type, old.Type, field.NewPath("type"))
			errs = append(errs, immutableData(secret.Immutable, old.Immutable, dataField{"data", secret.Data, old.Data})...)
			return append(errs, secretData(secret)...)
		},
	}
	s.WarningsFunc = func(_ context.Context, secret, _ *corev1.Secret) []string {
		if secret.Type != corev1.SecretTypeTLS {
			return nil
		}
		// Such a secret may be meant for something else than TLS: it is not refused.
		if _, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey]); err != nil {
			return []string{err.Error()}
		}
		return nil
	}
	return &registry.Resource{
		GVR:              version.WithResource("secrets"),
		Kind:             "Secret",
		Singular:         "secret",
		Namespaced:       true,
		New:              kind.Make[corev1.Secret],
		NewList:          kind.Make[corev1.SecretList],
		Strategy:         s,
		SelectableFields: []string{"type"},
		Fields:           func(obj runtime.Object) fields.Set { return fields.Set{"type": string(obj.(*corev1.Secret).Type)} },
	}
}

// defaultSecret also merges stringData, which is only ever written, into data.
func defaultSecret(secret *corev1.Secret) {
	if secret.Type == "" {
		secret.Type = corev1.SecretTypeOpaque
	}
	if len(secret.StringData) > 0 && secret.Data == nil {
		secret.Data = make(map[string][]byte, len(secret.StringData))
	}
	for key, value := range secret.StringData {
		secret.Data[key] = []byte(value)
	}
	secret.StringData = nil
}

func secretData(secret *corev1.Secret) field.ErrorList {
	var errs field.ErrorList
	data, size := field.NewPath("data"), 0
	for key, value := range secret.Data {
		for _, m := range utilvalidation.IsConfigMapKey(key) {
			errs = append(errs, field.Invalid(data.Key(key), key, m))
		}
		size += len(value)
	}
	if size > corev1.MaxSecretSize {
		errs = append(errs, field.TooLong(data, "", corev1.MaxSecretSize))
	}
	need := func(keys ...string) {
		for _, key := range keys {
			if _, ok := secret.Data[key]; !ok {
				errs = append(errs, field.Required(data.Key(key), ""))
			}
		}
	}
	parse := func(key string) {
		value, ok := secret.Data[key]
		if !ok {
			need(key)
			return
		}
		if err := json.Unmarshal(value, &map[string]any{}); err != nil {
			errs = append(errs, field.Invalid(data.Key(key), "<secret contents redacted>", err.Error()))
		}
	}
	switch secret.Type {
	case corev1.SecretTypeServiceAccountToken:
		if secret.Annotations[corev1.ServiceAccountNameKey] == "" {
			errs = append(errs, field.Required(field.NewPath("metadata", "annotations").Key(corev1.ServiceAccountNameKey), ""))
		}
	case corev1.SecretTypeDockercfg:
		parse(corev1.DockerConfigKey)
	case corev1.SecretTypeDockerConfigJson:
		parse(corev1.DockerConfigJsonKey)
	case corev1.SecretTypeBasicAuth:
		_, user := secret.Data[corev1.BasicAuthUsernameKey]
		if _, password := secret.Data[corev1.BasicAuthPasswordKey]; !user && !password {
			need(corev1.BasicAuthUsernameKey, corev1.BasicAuthPasswordKey)
		}
	case corev1.SecretTypeSSHAuth:
		if len(secret.Data[corev1.SSHAuthPrivateKey]) == 0 {
			errs = append(errs, field.Required(data.Key(corev1.SSHAuthPrivateKey), ""))
		}
	case corev1.SecretTypeTLS:
		need(corev1.TLSCertKey, corev1.TLSPrivateKeyKey)
	}
	return errs
}
