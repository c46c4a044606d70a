package volume

import (
	"context"
	"fmt"
	"io/fs"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
)

// The functions here turn API objects into the content of volumes. They are in
// the contract's package because a projected volume is made of all the others.

// DefaultMode is the mode of files for which nothing else is said.
const DefaultMode int32 = 0o644

// ConfigMapFiles is the content of a ConfigMap: all keys, or the chosen items.
func (r *Request) ConfigMapFiles(name string, items []corev1.KeyToPath, mode *int32, optional *bool) (Payload, error) {
	cm, err := r.Sources.ConfigMap(r.Pod.Namespace, name)
	if err != nil {
		if !apierrors.IsNotFound(err) || !isTrue(optional) {
			return nil, err
		}
		cm = &corev1.ConfigMap{}
	}
	find := func(key string) ([]byte, bool) {
		if s, ok := cm.Data[key]; ok {
			return []byte(s), true
		}
		b, ok := cm.BinaryData[key]
		return b, ok
	}
	if len(items) > 0 {
		return choose(find, items, mode, isTrue(optional), "configmap references non-existent config key: %s")
	}
	out := make(Payload, len(cm.Data)+len(cm.BinaryData))
	for k, v := range cm.Data {
		out[k] = File{Data: []byte(v), Mode: fileMode(nil, mode)}
	}
	for k, v := range cm.BinaryData {
		out[k] = File{Data: v, Mode: fileMode(nil, mode)}
	}
	return out, nil
}

// SecretFiles is the content of a Secret: all keys, or the chosen items.
func (r *Request) SecretFiles(name string, items []corev1.KeyToPath, mode *int32, optional *bool) (Payload, error) {
	secret, err := r.Sources.Secret(r.Pod.Namespace, name)
	if err != nil {
		if !apierrors.IsNotFound(err) || !isTrue(optional) {
			return nil, err
		}
		secret = &corev1.Secret{}
	}
	if len(items) > 0 {
		find := func(key string) ([]byte, bool) { b, ok := secret.Data[key]; return b, ok }
		return choose(find, items, mode, isTrue(optional), "references non-existent secret key: %s")
	}
	out := make(Payload, len(secret.Data))
	for k, v := range secret.Data {
		out[k] = File{Data: v, Mode: fileMode(nil, mode)}
	}
	return out, nil
}

func choose(find func(string) ([]byte, bool), items []corev1.KeyToPath, mode *int32, optional bool, missing string) (Payload, error) {
	out := make(Payload, len(items))
	for _, item := range items {
		data, ok := find(item.Key)
		if !ok {
			if optional {
				continue
			}
			return nil, fmt.Errorf(missing, item.Key)
		}
		out[item.Path] = File{Data: data, Mode: fileMode(item.Mode, mode)}
	}
	return out, nil
}

// DownwardFiles is the content of a downward API volume.
func (r *Request) DownwardFiles(items []corev1.DownwardAPIVolumeFile, mode *int32) (Payload, error) {
	var errs []error
	var allocatable corev1.ResourceList
	status := r.Sources.PodStatus(r.Pod)
	out := make(Payload, len(items))
	for _, item := range items {
		var value string
		var err error
		switch {
		case item.FieldRef != nil:
			value, err = PodField(r.Pod, &status, item.FieldRef.FieldPath)
		case item.ResourceFieldRef != nil:
			if allocatable == nil {
				allocatable, err = r.allocatable()
			}
			if err == nil {
				value, err = ContainerResource(r.Pod, item.ResourceFieldRef, "", allocatable)
			}
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		out[item.Path] = File{Data: []byte(value), Mode: fileMode(item.Mode, mode)}
	}
	return out, utilerrors.NewAggregate(errs)
}

func (r *Request) allocatable() (corev1.ResourceList, error) {
	node, err := r.Sources.Node()
	if err != nil {
		return nil, err
	}
	return node.Status.Allocatable, nil
}

// TokenFile is the content of a projected service account token, and when it
// must be replaced.
func (r *Request) TokenFile(ctx context.Context, t *corev1.ServiceAccountTokenProjection, mode *int32) (File, time.Time, error) {
	req := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: t.ExpirationSeconds,
		BoundObjectRef: &authenticationv1.BoundObjectReference{
			APIVersion: "v1", Kind: "Pod", Name: r.Pod.Name, UID: r.Pod.UID,
		},
	}}
	if t.Audience != "" {
		req.Spec.Audiences = []string{t.Audience}
	}
	got, err := r.Sources.Token(ctx, r.Pod.Namespace, r.Pod.Spec.ServiceAccountName, req)
	if err != nil {
		return File{}, time.Time{}, err
	}
	return r.PodFile([]byte(got.Status.Token), mode), nextTry(got, time.Now()), nil
}

// PodFile is a file for its pod's processes only: with a known user or an fsGroup it
// need not be readable for everybody (KEP-2451).
func (r *Request) PodFile(data []byte, mode *int32) File {
	f := File{Data: data, Mode: fileMode(nil, mode), Owner: UserOf(r.Pod)}
	if f.Owner != nil || r.FSGroup != nil {
		f.Mode = 0o600
	}
	return f
}

// nextTry is TokenRefreshAt; for a token that is due already, because its
// renewal failed or the clocks differ, it is after a tenth of the time that is left.
func nextTry(t *authenticationv1.TokenRequest, now time.Time) time.Time {
	const least = 10 * time.Second
	if at := TokenRefreshAt(t); at.After(now) {
		return at
	}
	return now.Add(max(t.Status.ExpirationTimestamp.Sub(now)/10, least))
}

// TokenRefreshAt is the moment from which a token should be replaced: after 80 %
// of its life, or after 24 hours.
func TokenRefreshAt(t *authenticationv1.TokenRequest) time.Time {
	const maxAge = 24 * time.Hour
	life := time.Hour
	if t.Spec.ExpirationSeconds != nil {
		life = time.Duration(*t.Spec.ExpirationSeconds) * time.Second
	}
	expires := t.Status.ExpirationTimestamp.Time
	return expires.Add(-life).Add(min(life/5*4, maxAge))
}

func fileMode(mode, fallback *int32) fs.FileMode {
	m := DefaultMode
	switch {
	case mode != nil:
		m = *mode
	case fallback != nil:
		m = *fallback
	}
	return fs.FileMode(m) & fs.ModePerm //nolint:gosec // 0-0777 by validation
}

func isTrue(b *bool) bool { return b != nil && *b }
