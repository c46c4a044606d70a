package volume

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/component-helpers/storage/ephemeral"
)

// Claims reads claims and the volumes that they are bound to. Both are read when a
// pod is mounted, never watched: a bound claim does not change its volume.
type Claims interface {
	Claim(ctx context.Context, namespace, name string) (*corev1.PersistentVolumeClaim, error)
	PersistentVolume(ctx context.Context, name string) (*corev1.PersistentVolume, error)
}

// LiveClaims asks the API.
type LiveClaims struct{ Client kubernetes.Interface }

var _ Claims = LiveClaims{}

// Claim implements Claims.
func (l LiveClaims) Claim(ctx context.Context, namespace, name string) (*corev1.PersistentVolumeClaim, error) {
	return l.Client.CoreV1().PersistentVolumeClaims(namespace).Get(ctx, name, metav1.GetOptions{})
}

// PersistentVolume implements Claims.
func (l LiveClaims) PersistentVolume(ctx context.Context, name string) (*corev1.PersistentVolume, error) {
	return l.Client.CoreV1().PersistentVolumes().Get(ctx, name, metav1.GetOptions{})
}

// A PersistentPlugin is a Plugin that also handles PersistentVolumes.
type PersistentPlugin interface {
	Plugin
	SupportsPersistent(spec *corev1.PersistentVolumeSpec) bool
}

// claimError says that a claim cannot be used yet, before any volume is touched.
type claimError struct {
	claim string
	err   error
}

func (e *claimError) Error() string {
	return fmt.Sprintf("error processing PVC %s: %v", e.claim, e.err)
}
func (e *claimError) Unwrap() error { return e.err }

// A PhaseError names the step of mounting that failed, in upstream's words:
// "MountVolume.MountDevice", and the volume as upstream calls it.
type PhaseError struct {
	Phase  string
	Volume string
	Err    error
}

func (e *PhaseError) Error() string { return e.Err.Error() }
func (e *PhaseError) Unwrap() error { return e.Err }

var (
	errNotBound = errors.New("PVC is not bound")
	errNoClaims = errors.New("this node mounts no claims")
)

// claimName returns the claim that a volume of the pod is, "" if it is none.
func claimName(pod *corev1.Pod, v *corev1.Volume) string {
	switch {
	case v.PersistentVolumeClaim != nil:
		return v.PersistentVolumeClaim.ClaimName
	case v.Ephemeral != nil:
		return ephemeral.VolumeClaimName(pod, v)
	}
	return ""
}

// resolve finds the volume that a pod's claim is bound to.
func (h *Host) resolve(ctx context.Context, pod *corev1.Pod, v *corev1.Volume, name string) (*corev1.PersistentVolumeClaim, *corev1.PersistentVolume, error) {
	fail := func(err error) error { return &claimError{pod.Namespace + "/" + name, err} }
	if h.config.Claims == nil {
		return nil, nil, fail(errNoClaims)
	}
	claim, err := h.config.Claims.Claim(ctx, pod.Namespace, name)
	if err != nil {
		return nil, nil, fail(fmt.Errorf("failed to fetch PVC from API server: %w", err))
	}
	if v.Ephemeral != nil {
		if err := ephemeral.VolumeIsForPod(pod, claim); err != nil {
			return nil, nil, fail(err)
		}
	}
	if claim.DeletionTimestamp != nil && claim.Status.Phase != corev1.ClaimBound {
		return nil, nil, fail(errors.New("PVC is being deleted"))
	}
	if claim.Status.Phase != corev1.ClaimBound || claim.Spec.VolumeName == "" {
		return nil, nil, fail(errNotBound)
	}
	pv, err := h.config.Claims.PersistentVolume(ctx, claim.Spec.VolumeName)
	if err != nil {
		return nil, nil, fail(fmt.Errorf("failed to fetch PV %s from API server: %w", claim.Spec.VolumeName, err))
	}
	if pv.Spec.ClaimRef == nil || pv.Spec.ClaimRef.UID != claim.UID {
		return nil, nil, fail(fmt.Errorf("PV %s is not bound to the claim", pv.Name))
	}
	return claim, pv, nil
}

// persistent makes the request of a claim's volume and finds its plug-in.
func (h *Host) persistent(ctx context.Context, pod *corev1.Pod, v *corev1.Volume, name string) (Request, Plugin, error) {
	claim, pv, err := h.resolve(ctx, pod, v, name)
	if err != nil {
		return Request{}, nil, err
	}
	effective := v
	var p Plugin
	if pv.Spec.HostPath != nil {
		effective = &corev1.Volume{Name: v.Name, VolumeSource: corev1.VolumeSource{HostPath: pv.Spec.HostPath}}
		p = h.plugin(effective)
	}
	for _, candidate := range h.config.Plugins {
		if pp, ok := candidate.(PersistentPlugin); p == nil && ok && pp.SupportsPersistent(&pv.Spec) {
			p = candidate
		}
	}
	if p == nil {
		return Request{}, nil, ErrNoPlugin
	}
	r := h.request(pod, effective, p)
	r.Dir = h.volumeDir(pod.UID, p.Name(), pv.Name)
	r.Claim, r.Persistent = claim, pv
	r.ReadOnly = v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ReadOnly
	return r, p, nil
}

// RetryFailed has the pods mounted again whose volumes could not be mounted: what
// they need has come.
func (h *Host) RetryFailed() {
	if h.config.Retry == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for uid, s := range h.pods {
		if s.failed {
			go h.config.Retry(uid)
		}
	}
}
