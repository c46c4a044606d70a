package noderestriction

import (
	"context"
	"errors"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/periplus/periplus/apiserver/admission"
)

// token: a node gets tokens for pods that are bound to it, and only for audiences that
// they, or the drivers of their volumes, want.
func (p plugin) token(ctx context.Context, node string, a *admission.Attributes) error {
	if a.Operation != admission.Create || a.Subresource != "token" {
		return nil
	}
	r, ok := a.Object.(*authenticationv1.TokenRequest)
	if !ok {
		return unexpectedType(a.Object)
	}
	ref := r.Spec.BoundObjectRef
	if ref == nil || ref.APIVersion != "v1" || ref.Kind != "Pod" || ref.Name == "" {
		return errors.New("node requested token not bound to a pod")
	}
	if ref.UID == "" {
		return errors.New("node requested token with a pod binding without a uid")
	}
	pod, err := get[*corev1.Pod](p, pods, a.Namespace, ref.Name)
	if err != nil {
		return err
	}
	if ref.UID != pod.UID {
		return fmt.Errorf("the UID in the bound object reference (%s) does not match the UID in record. The object might have been deleted and then recreated", ref.UID)
	}
	if pod.Spec.NodeName != node {
		return errors.New("node requested token bound to a pod scheduled on a different node")
	}
	return p.audience(ctx, a, r, pod)
}

func (p plugin) audience(ctx context.Context, a *admission.Attributes, r *authenticationv1.TokenRequest, pod *corev1.Pod) error {
	audience := ""
	switch len(r.Spec.Audiences) {
	case 0:
	case 1:
		audience = r.Spec.Audiences[0]
	default:
		return errors.New("node may only request 0 or 1 audiences")
	}
	wanted, err := p.wants(pod, audience)
	if err != nil {
		return fmt.Errorf("error validating audience %q: %w", audience, err)
	}
	if wanted {
		return nil
	}
	allowed, err := may(ctx, a, "request-serviceaccounts-token-audience", audience, a.Name)
	switch {
	case allowed:
		return nil
	case err != nil:
		return fmt.Errorf("error authorizing %s to request tokens for audience %q: %w", a.User.GetName(), audience, err)
	}
	return fmt.Errorf("%s is not authorized to request tokens for audience %q", a.User.GetName(), audience)
}

// wants reports whether a volume of the pod is one of tokens for the audience, or is
// served by a driver that wants such:
//
//	pod → projected → token
//	pod → (ephemeral → claim | claim) → volume → driver → token
//	pod → driver → token
func (p plugin) wants(pod *corev1.Pod, audience string) (bool, error) {
	var errs []error
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if v.Projected != nil {
			for _, s := range v.Projected.Sources {
				if s.ServiceAccountToken != nil && s.ServiceAccountToken.Audience == audience {
					return true, nil
				}
			}
		}
		driver, err := p.driverOf(pod, v)
		if driver != "" && err == nil {
			var wanted bool
			if wanted, err = p.driverWants(driver, audience); wanted {
				return true, nil
			}
		}
		if err != nil {
			errs = append(errs, err)
		}
	}
	return false, utilerrors.NewAggregate(errs)
}

// driverOf names the CSI driver that serves a volume; "": none does.
func (p plugin) driverOf(pod *corev1.Pod, v *corev1.Volume) (string, error) {
	name := ""
	switch {
	case v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate != nil:
		name = pod.Name + "-" + v.Name
	case v.PersistentVolumeClaim != nil:
		name = v.PersistentVolumeClaim.ClaimName
	case v.CSI != nil:
		return v.CSI.Driver, nil
	default:
		return "", nil
	}
	claim, err := get[*corev1.PersistentVolumeClaim](p, claims, pod.Namespace, name)
	if err != nil {
		return "", err
	}
	volume, err := get[*corev1.PersistentVolume](p, volumes, "", claim.Spec.VolumeName)
	if err != nil || volume.Spec.CSI == nil {
		return "", err
	}
	return volume.Spec.CSI.Driver, nil
}

func (p plugin) driverWants(driver, audience string) (bool, error) {
	d, err := get[*storagev1.CSIDriver](p, drivers, "", driver)
	if err != nil {
		return false, err
	}
	for _, r := range d.Spec.TokenRequests {
		if r.Audience == audience {
			return true, nil
		}
	}
	return false, nil
}
