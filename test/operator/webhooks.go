package operator

import (
	"context"
	"errors"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// Webhooks default and validate sites.
type Webhooks struct{}

var (
	_ admission.Defaulter[*Site] = Webhooks{}
	_ admission.Validator[*Site] = Webhooks{}
)

// SetupWithManager lets a manager serve them.
func (w Webhooks) SetupWithManager(m ctrl.Manager) error {
	return ctrl.NewWebhookManagedBy(m, &Site{}).WithDefaulter(w).WithValidator(w).Complete()
}

// Default implements admission.Defaulter.
func (Webhooks) Default(_ context.Context, site *Site) error {
	if site.Spec.Replicas == nil {
		two := int32(2)
		site.Spec.Replicas = &two
	}
	return nil
}

// ValidateCreate implements admission.Validator.
func (Webhooks) ValidateCreate(_ context.Context, site *Site) (admission.Warnings, error) {
	if site.Spec.Title == "" {
		return nil, errors.New("a site needs a title")
	}
	return nil, nil
}

// ValidateUpdate implements admission.Validator.
func (w Webhooks) ValidateUpdate(ctx context.Context, before, site *Site) (admission.Warnings, error) {
	if before.Spec.Title != site.Spec.Title && site.DeletionTimestamp.IsZero() {
		return nil, errors.New("the title of a site cannot change")
	}
	return w.ValidateCreate(ctx, site)
}

// ValidateDelete implements admission.Validator.
func (Webhooks) ValidateDelete(context.Context, *Site) (admission.Warnings, error) { return nil, nil }
